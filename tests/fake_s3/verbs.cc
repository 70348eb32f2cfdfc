#include "fake_s3/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "digest/crc32c.h"
#include "digest/hex.h"
#include "digest/md5.h"
#include "s3/http_date.h"
#include "s3/ranges.h"
#include "s3/uri.h"

namespace objectcache::fake_s3 {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

// Everything this server knows what to do about. A header that it ignored silently could be one
// that the client relies on.
constexpr std::string_view kKnownHeaders[] = {
    "host",
    "authorization",
    "connection",
    "user-agent",
    "accept",
    "accept-encoding",
    "date",
    "expect",
    "content-length",
    "content-type",
    "content-md5",
    "range",
    "if-match",
    "if-none-match",
    "x-amz-date",
    "x-amz-checksum-crc32c",
    "x-amz-content-sha256",
    "x-amz-security-token",
};

const Fault* find_fault(std::span<const Fault> faults, FaultKind kind) {
  const auto it = std::ranges::find(faults, kind, &Fault::kind);
  return it == faults.end() ? nullptr : &*it;
}

const std::string* find_value(const Pairs& query, std::string_view name) {
  const auto it = std::ranges::find(query, name, &Pairs::value_type::first);
  return it == query.end() ? nullptr : &it->second;
}

std::string value_or_empty(const Pairs& query, std::string_view name) {
  const std::string* value = find_value(query, name);
  return value == nullptr ? std::string() : *value;
}

// The first name in `query` that is not among `known`, or that is repeated.
std::optional<std::string> stray_parameter(const Pairs& query,
                                           std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : query) {
    if (std::ranges::find(known, name) == known.end()) return name;
    if (std::ranges::count(query, name, &Pairs::value_type::first) > 1) return name;
  }
  return std::nullopt;
}

Answer stray_answer(const std::string& name) {
  return error_answer(400, "InvalidArgument", "unknown or repeated query parameter " + name);
}

bool is_quoted_etag(std::string_view text) {
  return text == "*" || (text.size() >= 2 && text.front() == '"' && text.back() == '"' &&
                         text.substr(1, text.size() - 2).find('"') == text.npos);
}

// Content-MD5 and x-amz-checksum-crc32c, where given, must be those of the body.
std::optional<Answer> body_checksum_problem(const WireRequest& request) {
  if (const auto md5 = request.header("content-md5")) {
    if (*md5 != digest::base64(digest::md5(request.body))) {
      return error_answer(400, "BadDigest", "Content-MD5 is not that of the body");
    }
  }
  if (const auto crc = request.header("x-amz-checksum-crc32c")) {
    const std::uint32_t value = digest::crc32c(request.body);
    const std::array<std::byte, 4> big_endian{
        static_cast<std::byte>(value >> 24), static_cast<std::byte>(value >> 16),
        static_cast<std::byte>(value >> 8), static_cast<std::byte>(value)};
    if (*crc != digest::base64(big_endian)) {
      return error_answer(400, "BadDigest", "x-amz-checksum-crc32c is not that of the body");
    }
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- objects

// Conditions of GET and HEAD.
std::optional<Answer> read_condition_problem(const WireRequest& request, const Object& object) {
  const auto match = request.header("if-match");
  const auto none_match = request.header("if-none-match");
  for (const auto& value : {match, none_match}) {
    if (value && !is_quoted_etag(*value)) {
      return error_answer(400, "InvalidArgument", "an ETag must be quoted");
    }
  }
  if (match && *match != "*" && *match != object.etag) {
    return error_answer(412, "PreconditionFailed", "If-Match does not hold");
  }
  if (none_match && (*none_match == "*" || *none_match == object.etag)) {
    Answer out;
    out.status = 304;
    out.set_header("ETag", object.etag);
    return out;
  }
  return std::nullopt;
}

Answer get_object(const WireRequest& request, const Route& route, ObjectTable& table,
                  std::span<const Fault> faults) {
  ObjectPtr object = table.find(route.bucket, route.key);
  if (!object) return error_answer(404, "NoSuchKey", "The specified key does not exist.");
  if (auto problem = read_condition_problem(request, *object)) return std::move(*problem);
  Answer out;
  out.set_header("ETag", object->etag);
  out.set_header("Last-Modified", s3::format_http_date(object->modified));
  out.set_header("Content-Type", "application/octet-stream");
  out.set_header("Accept-Ranges", "bytes");
  if (const Fault* fault = find_fault(faults, FaultKind::kOtherObject)) {
    // The head stays that of the object asked for: only the bytes are wrong.
    ObjectPtr other = fault->text.empty() ? table.find_other(route.bucket, route.key)
                                          : table.find(route.bucket, fault->text);
    if (other) object = std::move(other);
  }
  out.body = object->bytes;
  const std::uint64_t size = object->bytes.size();
  const auto range = request.header("range");
  if (range && find_fault(faults, FaultKind::kIgnoreRange) == nullptr) {
    const auto wanted = s3::parse_range(*range, size);
    using Kind = s3::RangeRequest::Kind;
    if (wanted.kind == Kind::kWhole) {
      return error_answer(400, "InvalidArgument", "malformed Range");
    }
    if (wanted.kind == Kind::kMultiple) {
      return error_answer(501, "NotImplemented", "one range only");
    }
    if (wanted.kind == Kind::kUnsatisfiable) {
      Answer refused = error_answer(416, "InvalidRange", "The requested range is not satisfiable");
      refused.set_header("Content-Range", fmt::format("bytes */{}", size));
      return refused;
    }
    out.status = 206;
    out.body = out.body.subspan(wanted.range.offset, wanted.range.length);
    out.set_header("Content-Range", s3::format_content_range(wanted.range, size));
  }
  out.object = std::move(object);
  return out;
}

Answer put_object(WireRequest& request, const Route& route, const VerbRules& rules,
                  ObjectTable& table) {
  if (!request.header("content-length")) {
    return error_answer(411, "MissingContentLength", "Content-Length is needed");
  }
  if (request.body.size() > rules.object_bytes_max) {
    return error_answer(400, "EntityTooLarge", "the object is too large");
  }
  if (auto problem = body_checksum_problem(request)) return std::move(*problem);
  using Condition = ObjectTable::Condition;
  Condition condition = Condition::kNone;
  const auto none_match = request.header("if-none-match");
  const auto match = request.header("if-match");
  if (none_match && match) {
    return error_answer(400, "InvalidArgument", "If-Match and If-None-Match exclude each other");
  }
  if (none_match) {
    if (*none_match != "*") return error_answer(501, "NotImplemented", "If-None-Match: * only");
    condition = Condition::kAbsent;
  }
  if (match) {
    if (!is_quoted_etag(*match)) {
      return error_answer(400, "InvalidArgument", "an ETag must be quoted");
    }
    condition = Condition::kMatches;
  }
  const auto result = table.put(route.bucket, route.key, std::move(request.body), condition,
                                match.value_or(std::string_view{}));
  if (!result) return error_answer(404, "NoSuchBucket", "no such bucket");
  if (!result->object) {
    if (condition == Condition::kMatches && !result->existed) {
      return error_answer(404, "NoSuchKey", "The specified key does not exist.");
    }
    return error_answer(412, "PreconditionFailed",
                        "At least one of the pre-conditions you specified did not hold");
  }
  Answer out;
  out.set_header("ETag", result->object->etag);
  return out;
}

Answer object_verb(WireRequest& request, const Route& route, const VerbRules& rules,
                   ObjectTable& table, const Pairs& query, std::span<const Fault> faults) {
  if (auto name = stray_parameter(query, {})) return stray_answer(*name);
  if (route.key.size() > 1024) {
    return error_answer(400, "KeyTooLongError", "Your key is too long");
  }
  if (request.method != "PUT" && !request.body.empty()) {
    return error_answer(400, "InvalidRequest", "no body is expected here");
  }
  if (request.method == "GET") return get_object(request, route, table, faults);
  if (request.method == "HEAD") {
    Answer out = get_object(request, route, table, faults);
    out.head_only = true;
    return out;
  }
  if (request.method == "PUT") return put_object(request, route, rules, table);
  if (request.method == "DELETE") {
    table.erase(route.bucket, route.key);
    Answer out;
    out.status = 204;
    return out;
  }
  return error_answer(405, "MethodNotAllowed", "this method is not known for objects");
}

// ---------------------------------------------------------------- buckets

// Tokens are opaque to clients: hexadecimal text keeps them from being mistaken for a key.
std::string token_of(std::string_view last) { return "t" + digest::hex(digest::bytes_of(last)); }

std::optional<std::string> last_of_token(std::string_view token) {
  if (!token.starts_with('t')) return std::nullopt;
  const auto bytes = digest::from_hex(token.substr(1));
  if (!bytes) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

Answer list_objects(const Route& route, ObjectTable& table, const Pairs& query) {
  if (auto name = stray_parameter(query, {"list-type", "prefix", "delimiter", "start-after",
                                          "max-keys", "continuation-token", "encoding-type"})) {
    return stray_answer(*name);
  }
  if (value_or_empty(query, "list-type") != "2") {
    return error_answer(501, "NotImplemented", "only ListObjectsV2 (list-type=2)");
  }
  s3::ListResult result;
  result.bucket = route.bucket;
  result.prefix = value_or_empty(query, "prefix");
  result.delimiter = value_or_empty(query, "delimiter");
  result.start_after = value_or_empty(query, "start-after");
  result.continuation_token = value_or_empty(query, "continuation-token");
  const std::string encoding = value_or_empty(query, "encoding-type");
  if (!encoding.empty() && encoding != "url") {
    return error_answer(400, "InvalidArgument", "encoding-type must be url");
  }
  if (const std::string* text = find_value(query, "max-keys")) {
    const auto [end, error] =
        std::from_chars(text->data(), text->data() + text->size(), result.max_keys);
    if (text->empty() || error != std::errc{} || end != text->data() + text->size()) {
      return error_answer(400, "InvalidArgument", "max-keys must be a number");
    }
    result.max_keys = std::min(result.max_keys, 1000U);
  }
  std::string after = result.start_after;
  if (!result.continuation_token.empty()) {
    auto last = last_of_token(result.continuation_token);
    if (!last) return error_answer(400, "InvalidArgument", "the continuation token is incorrect");
    after = std::move(*last);
  }
  auto page = table.list(route.bucket, {.prefix = result.prefix,
                                        .delimiter = result.delimiter,
                                        .after = after,
                                        .entries_max = result.max_keys});
  result.objects = std::move(page.objects);
  result.common_prefixes = std::move(page.common_prefixes);
  result.truncated = page.truncated && result.max_keys > 0;
  if (result.truncated) result.next_continuation_token = token_of(page.last);
  Answer out;
  out.set_header("Content-Type", "application/xml");
  out.text = s3::write_list_result(
      result, encoding == "url" ? s3::KeyEncoding::kUrl : s3::KeyEncoding::kNone);
  return out;
}

Answer delete_objects(const WireRequest& request, const Route& route, const VerbRules& rules,
                      ObjectTable& table, const Pairs& query) {
  if (auto name = stray_parameter(query, {"delete"})) return stray_answer(*name);
  // Newer clients of other makes send a checksum that is not looked at here.
  const bool other_checksum =
      !rules.refuse_unknown_headers && request.header("x-amz-checksum-crc32").has_value();
  if (!request.header("content-md5") && !request.header("x-amz-checksum-crc32c") &&
      !other_checksum) {
    return error_answer(400, "InvalidRequest",
                        "Missing required header for this request: Content-MD5");
  }
  if (auto problem = body_checksum_problem(request)) return std::move(*problem);
  const std::string_view xml(reinterpret_cast<const char*>(request.body.data()),
                             request.body.size());
  const auto wanted = s3::parse_delete_request(xml);
  if (!wanted) return error_answer(400, "MalformedXML", wanted.error().message);
  s3::DeleteResult result;
  for (const std::string& key : wanted->keys) {
    table.erase(route.bucket, key);
    if (!wanted->quiet) result.deleted.push_back(key);
  }
  Answer out;
  out.set_header("Content-Type", "application/xml");
  out.text = s3::write_delete_result(result);
  return out;
}

Answer bucket_verb(WireRequest& request, const Route& route, const VerbRules& rules,
                   ObjectTable& table, const Pairs& query) {
  if (request.method == "POST") {
    if (find_value(query, "delete") != nullptr) {
      return delete_objects(request, route, rules, table, query);
    }
    return error_answer(501, "NotImplemented", "POST is for ?delete only");
  }
  if (!request.body.empty()) {
    return error_answer(400, "InvalidRequest", "no body is expected here");
  }
  if (request.method == "GET" && find_value(query, "location") != nullptr) {
    if (auto name = stray_parameter(query, {"location"})) return stray_answer(*name);
    Answer out;
    out.text = fmt::format("<LocationConstraint>{}</LocationConstraint>", rules.region);
    return out;
  }
  if (request.method == "GET") return list_objects(route, table, query);
  if (request.method == "HEAD") {
    if (auto name = stray_parameter(query, {})) return stray_answer(*name);
    Answer out;
    out.set_header("x-amz-bucket-region", rules.region);
    out.head_only = true;
    return out;
  }
  return error_answer(405, "MethodNotAllowed", "this method is not known for buckets");
}

}  // namespace

void Answer::set_header(std::string_view name, std::string value) {
  remove_header(name);
  headers.emplace_back(name, std::move(value));
}

void Answer::remove_header(std::string_view name) {
  std::erase_if(headers, [&](const auto& header) { return same_name(header.first, name); });
}

Answer error_answer(int status, std::string_view s3_code, std::string_view message) {
  s3::ErrorDocument document;
  document.code = s3_code;
  document.message = message;
  Answer out;
  out.status = status;
  out.set_header("Content-Type", "application/xml");
  out.text = s3::write_error_document(document);
  return out;
}

std::optional<Route> route_of(const WireRequest& request, const VerbRules& rules) {
  std::string_view path = request.path;
  if (!path.starts_with(rules.base_path)) return std::nullopt;
  path.remove_prefix(rules.base_path.size());
  if (!path.starts_with('/')) return std::nullopt;
  path.remove_prefix(1);
  Route out;
  std::string_view host = request.header("host").value_or("");
  host = host.substr(0, host.rfind(':'));
  const std::string suffix = "." + rules.virtual_host_suffix;
  const bool virtual_host = !rules.virtual_host_suffix.empty() && host.ends_with(suffix);
  if (virtual_host) {
    out.bucket = host.substr(0, host.size() - suffix.size());
  } else {
    const std::size_t slash = std::min(path.find('/'), path.size());
    auto bucket = s3::percent_decoded(path.substr(0, slash));
    if (!bucket) return std::nullopt;
    out.bucket = std::move(*bucket);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  auto key = s3::percent_decoded(path);
  if (!key) return std::nullopt;
  out.key = std::move(*key);
  return out;
}

Answer carry_out(WireRequest& request, const Route& route, const VerbRules& rules,
                 ObjectTable& table, std::span<const Fault> faults) {
  if (rules.refuse_unknown_headers) {
    for (const auto& header : request.headers) {
      const bool known = std::ranges::any_of(
          kKnownHeaders, [&](std::string_view name) { return same_name(name, header.name); });
      if (!known) {
        return error_answer(400, "InvalidArgument", fmt::format("unknown header {}", header.name));
      }
    }
  }
  const auto query = s3::parse_query(request.query);
  if (!query) return error_answer(400, "InvalidURI", "the query is malformed");
  if (route.bucket.empty()) {
    return error_answer(501, "NotImplemented", "the service itself has no verbs here");
  }
  if (!table.has_bucket(route.bucket)) {
    Answer out = error_answer(404, "NoSuchBucket", "The specified bucket does not exist");
    out.head_only = request.method == "HEAD";
    return out;
  }
  Answer out = route.key.empty() ? bucket_verb(request, route, rules, table, *query)
                                 : object_verb(request, route, rules, table, *query, faults);
  if (request.method == "HEAD") out.head_only = true;
  return out;
}

}  // namespace objectcache::fake_s3
