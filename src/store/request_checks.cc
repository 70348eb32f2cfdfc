#include "store/request_checks.h"

#include <fmt/format.h>

namespace objectcache::store {

std::optional<std::string> get_problem(const GetRequest& request) {
  if (auto problem = object_key_problem(request.key)) return problem;
  if (request.length == 0) return "a read of no bytes";
  if (request.length > UINT64_MAX - request.offset) return "the range ends beyond 2^64";
  std::uint64_t room = 0;
  for (const Segment& segment : request.destination) {
    if (segment.empty()) return "a segment of the destination is empty";
    room += segment.size();
  }
  if (room != request.length) {
    return fmt::format("the destination has {} bytes, the range {}", room, request.length);
  }
  return std::nullopt;
}

std::optional<std::string> put_problem(const PutRequest& request) {
  return object_key_problem(request.key);
}

std::optional<std::string> list_problem(const ListRequest& request) {
  if (request.entries_max < 1 || request.entries_max > 1000) {
    return "a page of a listing has 1 to 1000 entries";
  }
  if (request.delimiter != 0 && request.delimiter != '/') return "the only delimiter is '/'";
  if (request.prefix.size() > 4096 || request.start_after.size() > 4096) {
    return "a prefix or start_after has at most 4096 bytes";
  }
  return std::nullopt;
}

std::optional<std::string> remove_many_problem(const std::vector<ObjectKey>& keys) {
  if (keys.size() > 1000) return "at most 1000 keys can be deleted in one call";
  for (const ObjectKey& key : keys) {
    if (auto problem = object_key_problem(key)) return "'" + key.text + "': " + *problem;
  }
  return std::nullopt;
}

std::uint64_t body_bytes(const std::vector<ConstSegment>& body) {
  std::uint64_t bytes = 0;
  for (const ConstSegment& segment : body) bytes += segment.size();
  return bytes;
}

Error CallName::error(ErrorCode code, std::string message) const {
  return Error{.code = code,
               .message = std::move(message),
               .action = std::string(action),
               .key = subject,
               .s3_code = {},
               .request_id = {}};
}

CallName name_call(std::string_view action, std::string_view url, std::string_view key) {
  std::string subject(url);
  if (!key.empty()) {
    if (!subject.ends_with('/') && !subject.ends_with(':')) subject += '/';
    subject += key;
  }
  return {.action = action, .subject = std::move(subject)};
}

std::string start_after_common_prefix(std::string_view common_prefix) {
  return std::string(common_prefix) + "~";
}

}  // namespace objectcache::store
