// The small texts of S3: dates, ranges, names, credentials files, metadata answers, signatures.
// The first byte chooses the parser, so that each corpus entry belongs to one.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "s3/credentials.h"
#include "s3/http_date.h"
#include "s3/metadata.h"
#include "s3/profiles.h"
#include "s3/ranges.h"
#include "s3/sigv4.h"
#include "s3/uri.h"

namespace {

using namespace objectcache::s3;

void require(bool ok) {
  if (!ok) std::abort();
}

void check_dates(std::string_view text) {
  if (const auto time = parse_amz_date(text)) {
    // A leap second is the only text that does not come back.
    require(format_amz_date(*time).view() == text || text.substr(13, 2) == "60");
  }
  if (const auto time = parse_http_date(text)) {
    require(parse_http_date(format_http_date(*time)) == time);
  }
  if (const auto time = parse_iso8601(text)) {
    require(parse_iso8601(format_iso8601(*time)) == time);
  }
}

void check_ranges(std::string_view text) {
  const ByteRange asked{.offset = 10, .length = 10};
  if (const auto told = parse_content_range(text); told && told->range) {
    require(told->range->length > 0);
    require(!told->object_bytes ||
            told->range->offset + told->range->length <= *told->object_bytes);
  }
  const auto answer = judge_range_answer(asked, 206, text, 10);
  if (answer.verdict == RangeVerdict::kExact) require(parse_content_range(text)->range == asked);
  const auto range = parse_range(text, 1000);
  if (range.kind == RangeRequest::Kind::kPart) {
    require(range.range.length > 0 && range.range.offset + range.range.length <= 1000);
  }
}

void check_uris(std::string_view text) {
  require(percent_decoded(path_encoded(text)) == text);
  require(percent_decoded(query_encoded(text)) == text);
  if (const auto pairs = parse_query(text)) {
    QueryBuilder query;
    for (const auto& [name, value] : *pairs) query.add(name, value);
    require(parse_query(query.str()).has_value());
  }
  if (const auto endpoint = parse_endpoint(text)) {
    const auto again = parse_endpoint(endpoint->url());
    require(again.has_value() && again->url() == endpoint->url());
  }
}

void check_profiles(std::string_view text) {
  const auto cut = text.find('\x01');
  const auto first = text.substr(0, cut);
  const auto second = cut == text.npos ? std::string_view{} : text.substr(cut + 1);
  static_cast<void>(read_profile(first, second, "default"));
  static_cast<void>(read_profile(first, second, "work"));
}

void check_metadata(std::string_view text) {
  if (const auto credentials = parse_metadata_credentials(text)) {
    require(!credentials_problem(*credentials));
  }
  if (const auto token = parse_instance_token(text)) require(!token->empty());
  static_cast<void>(parse_instance_role(text));
  static_cast<void>(container_request(
      {.relative_uri = {}, .full_uri = std::string(text), .token = Secret(std::string(text))}));
}

void check_signatures(std::string_view text) {
  if (const auto authorization = parse_authorization(text)) {
    require(authorization->signature.size() == 64 && !authorization->signed_headers.empty());
  }
  // Signing and checking agree, whatever the path and query are.
  const auto cut = text.find('?');
  const std::string path = "/" + path_encoded(text.substr(0, cut));
  const std::string_view query = cut == text.npos ? std::string_view{} : text.substr(cut + 1);
  const Credentials credentials{.access_key_id = "AK",
                                .secret_access_key = Secret("secret"),
                                .session_token = {},
                                .expires_at = {}};
  std::vector<HeaderView> headers{{.name = "Host", .value = text}};
  const RequestView request{.method = "GET",
                            .path = path,
                            .query = query,
                            .headers = headers,
                            .payload_hash = kEmptyPayload};
  const auto added = Signer("r").sign(request, credentials, WallTime{});
  headers.push_back({.name = "x-amz-date", .value = added.x_amz_date});
  headers.push_back({.name = "x-amz-content-sha256", .value = added.x_amz_content_sha256});
  headers.push_back({.name = "authorization", .value = added.authorization});
  Checker checker({.region = "r"}, [&](std::string_view) { return &credentials; });
  RequestView seen = request;
  seen.headers = headers;
  const auto result = checker.check(seen, WallTime{});
  require(result.has_value() || result.error().failure == CheckFailure::kMalformed);
  // Foreign text as a signature, over the same request.
  headers.back().value = text;
  require(!checker.check(seen, WallTime{}).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'd':
      check_dates(text);
      break;
    case 'r':
      check_ranges(text);
      break;
    case 'u':
      check_uris(text);
      break;
    case 'p':
      check_profiles(text);
      break;
    case 'm':
      check_metadata(text);
      break;
    case 's':
      check_signatures(text);
      break;
    default:
      break;
  }
  return 0;
}
