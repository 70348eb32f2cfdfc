#include "store/s3/list_operation.h"

#include <algorithm>
#include <utility>

#include "s3/uri.h"
#include "store/request_checks.h"
#include "store/s3/etag.h"

namespace objectcache::store_s3 {
namespace {

/// Pages in a row that hold nothing new; a server that gives more never ends.
constexpr std::uint32_t kEmptyPagesMax = 1000;

/// Servers that keep keys as files list them folder by folder: "a/b" before "a-b", unlike S3.
/// Within one page that is mended by sorting. Across pages it is not: going on behind a page's
/// greatest key would lose what the server means to list later.
bool loses_keys(const s3::ListResult& result, const std::string& after) {
  const bool sorted = std::ranges::is_sorted(result.objects, {}, &s3::ListedObject::key);
  const bool stale = !after.empty() && std::ranges::any_of(result.objects, [&](const auto& object) {
    return object.key <= after;
  });
  return stale || (result.truncated && !sorted);
}

}  // namespace

std::shared_ptr<ListOperation> ListOperation::begin(Lane& lane, store::ListRequest request,
                                                    store::ListCompletion done) {
  std::shared_ptr<ListOperation> list(new ListOperation(lane, std::move(request), std::move(done)));
  list->ask({});
  return list;
}

void ListOperation::ask(const std::string& continuation_token) {
  const S3Core& core = lane_.core();
  Call::Request request{.subject = {.verb = Verb::kList,
                                    .action = "LIST",
                                    .key = core.key_url(request_.prefix),
                                    .deadline = request_.deadline,
                                    .internal = true},
                        .spec = {},
                        .accepted = {}};
  s3::QueryBuilder query;
  query.add("list-type", "2");
  query.add("encoding-type", "url");
  query.add("max-keys", std::to_string(request_.entries_max));
  if (const std::string prefix = core.full_key(request_.prefix); !prefix.empty()) {
    query.add("prefix", prefix);
  }
  if (request_.delimiter != 0) query.add("delimiter", std::string_view(&request_.delimiter, 1));
  if (!continuation_token.empty()) {
    query.add("continuation-token", continuation_token);
  } else if (!request_.start_after.empty()) {
    query.add("start-after", core.full_key(request_.start_after));
  }
  request.spec.verb = Verb::kList;
  request.spec.method = "GET";
  request.spec.query = query.str();
  call_ = Call::begin(lane_, std::move(request),
                      [self = shared_from_this()](Result<CallAnswer> answer) {
                        self->on_answer(std::move(answer));
                      });
}

store::ListPage ListOperation::page_of(s3::ListResult& result) const {
  const std::string& root = lane_.core().options.prefix;
  const std::size_t cut = root.empty() ? 0 : root.size() + 1;
  const std::string& after = request_.start_after;
  store::ListPage page;
  for (s3::ListedObject& object : result.objects) {
    if (object.key.size() <= cut) continue;
    object.key.erase(0, cut);
    // Some servers understand "a//" as "a/".
    if (!object.key.starts_with(request_.prefix)) continue;
    page.entries.push_back({.key = {std::move(object.key)},
                            .size_bytes = object.size_bytes,
                            .version = version_of(object.etag),
                            .modified = object.modified});
  }
  for (std::string& prefix : result.common_prefixes) {
    if (prefix.size() <= cut) continue;
    prefix.erase(0, cut);
    if (!prefix.starts_with(request_.prefix)) continue;
    // Of a roll-up that begins before start_after something may still follow, unless it is the one
    // that a page of ours ended with.
    if (prefix <= after &&
        (!after.starts_with(prefix) || after == store::start_after_common_prefix(prefix))) {
      continue;
    }
    page.common_prefixes.push_back(std::move(prefix));
  }
  std::ranges::sort(page.entries, {}, &store::ObjectInfo::key);
  std::ranges::sort(page.common_prefixes);
  return page;
}

void ListOperation::on_answer(Result<CallAnswer> answer) {
  if (!answer) {
    finish(std::unexpected(std::move(answer.error())));
    return;
  }
  auto result = s3::parse_list_result(answer->body);
  if (!result) {
    finish(std::unexpected(std::move(result.error())));
    return;
  }
  const std::string& after = request_.start_after;
  if (loses_keys(*result, after.empty() ? after : lane_.core().full_key(after))) {
    finish(
        fail(ErrorCode::kUnsupported,
             "the store does not list these keys in the order of their bytes, so that a listing of "
             "several pages would lose some; list a longer prefix"));
    return;
  }
  store::ListPage page = page_of(*result);
  if (result->truncated && page.entries.empty() && page.common_prefixes.empty()) {
    if (result->next_continuation_token.empty() || ++pages_ > kEmptyPagesMax) {
      finish(fail(ErrorCode::kUnavailable,
                  "the store's listing does not advance: a page that is not the last holds nothing "
                  "new"));
      return;
    }
    ask(result->next_continuation_token);
    return;
  }
  if (result->truncated) {
    const std::string last_key = page.entries.empty() ? "" : page.entries.back().key.text;
    const std::string last_prefix = page.common_prefixes.empty() ? "" : page.common_prefixes.back();
    page.next_start_after =
        last_prefix > last_key ? store::start_after_common_prefix(last_prefix) : last_key;
  }
  finish(std::move(page));
}

void ListOperation::finish(Result<store::ListPage> result) {
  call_.reset();
  if (!result) {
    result.error().action = "LIST";
    if (result.error().key.empty()) result.error().key = lane_.core().key_url(request_.prefix);
    lane_.core().counters.add_error(result.error().code);
  }
  store::ListCompletion done = std::move(done_);
  done(std::move(result));
}

}  // namespace objectcache::store_s3
