#include "store/s3/remove_operation.h"

#include <algorithm>
#include <utility>

#include "digest/hex.h"
#include "digest/md5.h"
#include "digest/sha256.h"
#include "s3/error_map.h"
#include "s3/xml.h"

namespace objectcache::store_s3 {
namespace {

Call::Request delete_request(const S3Core& core, const store::ObjectKey& key, TimePoint deadline) {
  Call::Request out;
  out.subject = {.verb = Verb::kDelete,
                 .action = "DELETE",
                 .key = core.key_url(key.text),
                 .deadline = deadline,
                 .internal = true};
  out.spec.verb = Verb::kDelete;
  out.spec.method = "DELETE";
  out.spec.key = core.full_key(key.text);
  return out;
}

/// Deleting what is not there succeeds; a bucket that is not there is another matter.
Result<void> removed(Result<CallAnswer> answer) {
  if (answer || (answer.error().http_status == 404 && answer.error().s3_code != "NoSuchBucket")) {
    return {};
  }
  return std::unexpected(std::move(answer.error()));
}

}  // namespace

std::shared_ptr<Call> begin_remove(Lane& lane, const store::ObjectKey& key, TimePoint deadline,
                                   store::RemoveCompletion done) {
  return Call::begin(lane, delete_request(lane.core(), key, deadline),
                     [&lane, done = std::move(done)](Result<CallAnswer> answer) mutable {
                       Result<void> result = removed(std::move(answer));
                       if (!result) lane.core().counters.add_error(result.error().code);
                       done(std::move(result));
                     });
}

std::shared_ptr<RemoveManyOperation> RemoveManyOperation::begin(Lane& lane,
                                                                std::vector<store::ObjectKey> keys,
                                                                TimePoint deadline,
                                                                store::RemoveManyCompletion done) {
  std::shared_ptr<RemoveManyOperation> remove(
      new RemoveManyOperation(lane, std::move(keys), deadline, std::move(done)));
  if (lane.core().no_delete_many.load(std::memory_order_relaxed)) {
    remove->send_singles();
  } else {
    remove->send_batch();
  }
  return remove;
}

void RemoveManyOperation::cancel() {
  // A copy: an end changes the list.
  const std::vector<std::shared_ptr<Call>> calls = calls_;
  for (const auto& call : calls) {
    if (call) call->cancel();
  }
}

// ---------------------------------------------------------------- one request

void RemoveManyOperation::send_batch() {
  S3Core& core = lane_.core();
  s3::DeleteRequest list{.keys = {}, .quiet = true};
  list.keys.reserve(keys_.size());
  for (const store::ObjectKey& key : keys_) list.keys.push_back(core.full_key(key.text));
  body_ = s3::write_delete_request(list);

  const ConstSegment body = digest::bytes_of(body_);
  Call::Request request;
  request.subject = {.verb = Verb::kDeleteMany,
                     .action = "DELETE",
                     .key = core.options.url(),
                     .deadline = deadline_,
                     .internal = true};
  request.spec.verb = Verb::kDeleteMany;
  request.spec.method = "POST";
  request.spec.query = s3::QueryBuilder().add("delete").str();
  request.spec.headers.push_back({"Content-MD5", digest::base64(digest::md5(body))});
  request.spec.headers.push_back({"Content-Type", "application/xml"});
  request.spec.body = {body};
  request.spec.payload_hash = digest::hex(digest::sha256(body));
  request.spec.idempotent = true;
  calls_ = {Call::begin(lane_, std::move(request),
                        [self = shared_from_this()](Result<CallAnswer> answer) {
                          self->calls_.clear();
                          self->on_batch(std::move(answer));
                        })};
}

void RemoveManyOperation::on_batch(Result<CallAnswer> answer) {
  if (!answer) {
    if (answer.error().code == ErrorCode::kUnsupported) {
      lane_.core().no_delete_many.store(true, std::memory_order_relaxed);
      send_singles();
    } else {
      finish(std::unexpected(std::move(answer.error())));
    }
    return;
  }
  auto result = s3::parse_delete_result(answer->body);
  if (!result) {
    finish(std::unexpected(std::move(result.error())));
    return;
  }
  const std::string& root = lane_.core().options.prefix;
  for (s3::DeleteFailure& failure : result->failures) {
    if (failure.code == "NoSuchKey") continue;
    store::RemoveFailure out;
    out.error = s3::meaning_of(failure).error;
    if (!root.empty() && failure.key.starts_with(root + "/")) failure.key.erase(0, root.size() + 1);
    out.error.action = "DELETE";
    out.error.key = lane_.core().key_url(failure.key);
    out.key.text = std::move(failure.key);
    failures_.push_back(std::move(out));
  }
  finish(std::move(failures_));
}

// ---------------------------------------------------------------- many requests

void RemoveManyOperation::send_singles() {
  calls_.resize(kSinglesMax);
  for (std::size_t place = 0; place < kSinglesMax && !abort_ && next_single_ < keys_.size();
       ++place) {
    if (calls_[place]) continue;
    const std::size_t index = next_single_++;
    ++running_;
    calls_[place] =
        Call::begin(lane_, delete_request(lane_.core(), keys_[index], deadline_),
                    [self = shared_from_this(), index, place](Result<CallAnswer> answer) {
                      self->on_single(index, place, removed(std::move(answer)));
                    });
  }
  if (running_ > 0) return;
  if (abort_) {
    finish(std::unexpected(std::move(*abort_)));
  } else {
    finish(std::move(failures_));
  }
}

void RemoveManyOperation::on_single(std::size_t index, std::size_t place, Result<void> result) {
  calls_[place].reset();
  --running_;
  if (!result) {
    const ErrorCode code = result.error().code;
    if (code == ErrorCode::kCancelled || code == ErrorCode::kDeadlineExceeded) {
      abort_ = std::move(result.error());
    } else {
      failures_.push_back({.key = keys_[index], .error = std::move(result.error())});
    }
  }
  send_singles();
}

void RemoveManyOperation::finish(Result<std::vector<store::RemoveFailure>> result) {
  if (!result) {
    result.error().action = "DELETE";
    if (result.error().key.empty()) result.error().key = lane_.core().options.url();
    lane_.core().counters.add_error(result.error().code);
  }
  store::RemoveManyCompletion done = std::move(done_);
  done(std::move(result));
}

}  // namespace objectcache::store_s3
