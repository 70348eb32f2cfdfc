#include "store/s3/head_operation.h"

#include <charconv>
#include <utility>

#include "s3/http_date.h"
#include "store/s3/etag.h"

namespace objectcache::store_s3 {
namespace {

Result<store::ObjectInfo> info_of(const store::ObjectKey& key, const CallAnswer& answer) {
  store::ObjectInfo info;
  info.key = key;
  const std::string_view length =
      http::find_header(answer.headers, "content-length").value_or(std::string_view());
  const auto [end, error] =
      std::from_chars(length.data(), length.data() + length.size(), info.size_bytes);
  if (length.empty() || error != std::errc{} || end != length.data() + length.size()) {
    return fail(ErrorCode::kUnavailable, "the answer does not tell the object's size");
  }
  info.version = version_of(http::find_header(answer.headers, "etag"));
  if (const auto date = http::find_header(answer.headers, "last-modified")) {
    info.modified = s3::parse_http_date(*date).value_or(s3::WallTime{});
  }
  return info;
}

}  // namespace

std::shared_ptr<HeadOperation> HeadOperation::begin(Lane& lane, store::ObjectKey key,
                                                    TimePoint deadline,
                                                    store::HeadCompletion done) {
  std::shared_ptr<HeadOperation> head(
      new HeadOperation(lane, std::move(key), deadline, std::move(done)));
  head->ask_object();
  return head;
}

void HeadOperation::ask_object() {
  Call::Request request{.subject = {.verb = Verb::kHead,
                                    .action = "HEAD",
                                    .key = lane_.core().key_url(key_.text),
                                    .deadline = deadline_,
                                    .internal = true},
                        .spec = {},
                        .accepted = {404}};
  request.spec.verb = Verb::kHead;
  request.spec.method = "HEAD";
  request.spec.key = lane_.core().full_key(key_.text);
  call_ = Call::begin(lane_, std::move(request),
                      [self = shared_from_this()](Result<CallAnswer> answer) {
                        if (!answer)
                          return self->finish(std::unexpected(std::move(answer.error())));
                        if (answer->status != 404) {
                          auto info = info_of(self->key_, *answer);
                          if (!info) return self->finish(std::unexpected(std::move(info.error())));
                          return self->finish(std::move(*info));
                        }
                        if (self->lane_.core().bucket_seen.load(std::memory_order_relaxed)) {
                          return self->finish(std::nullopt);
                        }
                        self->ask_bucket();
                      });
}

void HeadOperation::ask_bucket() {
  Call::Request request{.subject = {.verb = Verb::kHead,
                                    .action = "HEAD",
                                    .key = "s3://" + lane_.core().options.bucket,
                                    .deadline = deadline_,
                                    .internal = true},
                        .spec = {},
                        .accepted = {404}};
  request.spec.verb = Verb::kHead;
  request.spec.method = "HEAD";
  call_ = Call::begin(
      lane_, std::move(request), [self = shared_from_this()](Result<CallAnswer> answer) {
        if (answer && answer->status == 404) {
          return self->finish(fail(ErrorCode::kNotFound,
                                   "the bucket does not exist; create it or check its name", "HEAD",
                                   "s3://" + self->lane_.core().options.bucket));
        }
        if (!answer && answer.error().code != ErrorCode::kPermissionDenied) {
          return self->finish(std::unexpected(std::move(answer.error())));
        }
        // Who may not ask for the bucket is believed to have named it right.
        self->lane_.core().bucket_seen.store(true, std::memory_order_relaxed);
        self->finish(std::nullopt);
      });
}

void HeadOperation::finish(Result<std::optional<store::ObjectInfo>> result) {
  call_.reset();
  if (!result) {
    if (result.error().action.empty()) result.error().action = "HEAD";
    if (result.error().key.empty()) result.error().key = lane_.core().key_url(key_.text);
    lane_.core().counters.add_error(result.error().code);
  }
  store::HeadCompletion done = std::move(done_);
  done(std::move(result));
}

}  // namespace objectcache::store_s3
