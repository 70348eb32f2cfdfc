#include "s3/sigv4.h"

#include <algorithm>
#include <utility>

#include "digest/hex.h"
#include "s3/uri.h"

namespace objectcache::s3 {
namespace {

using digest::bytes_of;

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool less_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::lexicographical_compare(a, b, {}, lower, lower);
}
bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

void append_lower(std::string& out, std::string_view text) {
  for (const char c : text) out.push_back(lower(c));
}

// Trims the ends and makes one space of each run of spaces.
void append_value(std::string& out, std::string_view value) {
  const std::size_t start = out.size();
  bool space = false;
  for (const char c : value) {
    if (c == ' ' || c == '\t') {
      space = true;
      continue;
    }
    if (space && out.size() > start) out.push_back(' ');
    space = false;
    out.push_back(c);
  }
}

// Clients encode differently ("+" or "%2B", "%7e" or "~"); the canonical form is what our strict
// encoder makes of the decoded text. Pieces without '%' need no copy to decode them.
bool append_recoded(std::string& out, std::string_view text, bool is_path) {
  const auto append = is_path ? append_path_encoded : append_query_encoded;
  if (text.find('%') == text.npos) {
    append(out, text);
    return true;
  }
  const auto decoded = percent_decoded(text);
  if (decoded) append(out, *decoded);
  return decoded.has_value();
}

bool append_canonical_query(std::string& out, std::string_view query) {
  if (query.empty()) return true;
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto& [name, value] = pairs.emplace_back();
    if (!append_recoded(name, pair.substr(0, equals), false) ||
        !append_recoded(value, pair.substr(std::min(equals + 1, pair.size())), false)) {
      return false;
    }
  }
  std::ranges::sort(pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0) out.push_back('&');
    out += pairs[i].first;
    out.push_back('=');
    out += pairs[i].second;
  }
  return true;
}

// "host;range;x-amz-date"
void append_signed_names(std::string& out, std::span<const HeaderView> sorted) {
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && equal_ignoring_case(sorted[i].name, sorted[i - 1].name)) continue;
    if (i > 0) out.push_back(';');
    append_lower(out, sorted[i].name);
  }
}

void append_scope(std::string& out, const Scope& scope) {
  out += scope.day;
  out += '/';
  out += scope.region;
  out += '/';
  out += scope.service;
  out += "/aws4_request";
}

bool is_hex_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::unexpected<CheckProblem> problem(CheckFailure failure, std::string message) {
  return std::unexpected(CheckProblem{.failure = failure, .message = std::move(message)});
}

const HeaderView* find_header(std::span<const HeaderView> headers, std::string_view name) {
  for (const HeaderView& header : headers) {
    if (equal_ignoring_case(header.name, name)) return &header;
  }
  return nullptr;
}

// A signature over some headers says nothing about the others: these must be among the signed.
bool must_be_signed(std::string_view name) {
  constexpr std::string_view kAmz = "x-amz-";
  return equal_ignoring_case(name, "host") ||
         (name.size() >= kAmz.size() && equal_ignoring_case(name.substr(0, kAmz.size()), kAmz));
}

std::string_view take_field(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view field = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return field;
}

}  // namespace

bool append_canonical_request(std::string& out, const RequestView& request,
                              std::span<const HeaderView> sorted) {
  out += request.method;
  out += '\n';
  if (!append_recoded(out, request.path, true)) return false;
  out += '\n';
  if (!append_canonical_query(out, request.query)) return false;
  out += '\n';
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && equal_ignoring_case(sorted[i].name, sorted[i - 1].name)) {
      out.back() = ',';
    } else {
      append_lower(out, sorted[i].name);
      out += ':';
    }
    append_value(out, sorted[i].value);
    out += '\n';
  }
  out += '\n';
  append_signed_names(out, sorted);
  out += '\n';
  out += request.payload_hash;
  return true;
}

void sort_headers(std::vector<HeaderView>& headers) {
  // Insertion keeps equal names in order and needs no memory; a request has a handful of headers.
  for (auto it = headers.begin(); it != headers.end(); ++it) {
    const auto to =
        std::upper_bound(headers.begin(), it, *it, [](const HeaderView& a, const HeaderView& b) {
          return less_ignoring_case(a.name, b.name);
        });
    std::rotate(to, it, it + 1);
  }
}

void SigningKey::derive(const Credentials& credentials, const Scope& scope) {
  const std::string start = "AWS4" + credentials.secret_access_key.reveal();
  const auto by_day = digest::hmac_sha256(bytes_of(start), bytes_of(scope.day));
  const auto by_region = digest::hmac_sha256(by_day, bytes_of(scope.region));
  const auto by_service = digest::hmac_sha256(by_region, bytes_of(scope.service));
  key_ = digest::hmac_sha256(by_service, bytes_of("aws4_request"));
  secret_ = credentials.secret_access_key;
}

std::string SigningKey::sign(const Credentials& credentials, const Scope& scope,
                             std::string_view amz_date, std::string_view canonical_request) {
  // "algorithm \n date \n scope \n hash"; the scope inside it also tells whether key_ still fits.
  std::string text;
  text.reserve(192);
  text += kAlgorithm;
  text += '\n';
  text += amz_date;
  text += '\n';
  const std::size_t scope_start = text.size();
  append_scope(text, scope);
  const std::string_view scope_text = std::string_view(text).substr(scope_start);
  if (scope_text != scope_text_ || !(secret_ == credentials.secret_access_key)) {
    derive(credentials, scope);
    scope_text_ = scope_text;
  }
  text += '\n';
  digest::append_hex(text, digest::sha256(bytes_of(canonical_request)));
  return digest::hex(digest::hmac_sha256(key_, bytes_of(text)));
}

SignedHeaders Signer::sign(const RequestView& request, const Credentials& credentials,
                           WallTime now) {
  const AmzDate date = format_amz_date(now);
  const std::string& token = credentials.session_token.reveal();
  headers_.assign(request.headers.begin(), request.headers.end());
  headers_.push_back({.name = "x-amz-content-sha256", .value = request.payload_hash});
  headers_.push_back({.name = "x-amz-date", .value = date.view()});
  if (!token.empty()) headers_.push_back({.name = "x-amz-security-token", .value = token});
  sort_headers(headers_);

  canonical_.clear();
  // A malformed path is our own defect; the server will refuse the signature and name the request.
  static_cast<void>(append_canonical_request(canonical_, request, headers_));
  const Scope scope{.day = date.day(), .region = region_, .service = service_};
  const std::string signature = key_.sign(credentials, scope, date.view(), canonical_);

  SignedHeaders out{.x_amz_date = std::string(date.view()),
                    .x_amz_content_sha256 = std::string(request.payload_hash),
                    .authorization = {},
                    .x_amz_security_token = token};
  std::string& text = out.authorization;
  text.reserve(256);
  text += kAlgorithm;
  text += " Credential=";
  text += credentials.access_key_id;
  text += '/';
  append_scope(text, scope);
  text += ", SignedHeaders=";
  append_signed_names(text, headers_);
  text += ", Signature=";
  text += signature;
  headers_.clear();  // its views end with this call
  return out;
}

std::optional<Authorization> parse_authorization(std::string_view value) {
  constexpr std::size_t kHeadersMax = 64;
  if (!value.starts_with(kAlgorithm)) return std::nullopt;
  value.remove_prefix(kAlgorithm.size());
  if (!value.starts_with(' ')) return std::nullopt;
  std::string_view credential;
  std::string_view names;
  Authorization out;
  while (!value.empty()) {
    std::string_view field = take_field(value, ',');
    while (field.starts_with(' ')) field.remove_prefix(1);
    while (field.ends_with(' ')) field.remove_suffix(1);
    const std::string_view name = take_field(field, '=');
    std::string_view* to = name == "Credential"      ? &credential
                           : name == "SignedHeaders" ? &names
                           : name == "Signature"     ? &out.signature
                                                     : nullptr;
    if (to == nullptr || !to->empty() || field.empty()) return std::nullopt;
    *to = field;
  }
  if (!is_hex_sha256(out.signature)) return std::nullopt;
  out.access_key_id = take_field(credential, '/');
  out.scope.day = take_field(credential, '/');
  out.scope.region = take_field(credential, '/');
  out.scope.service = take_field(credential, '/');
  if (credential != "aws4_request" || out.access_key_id.empty() || out.scope.region.empty() ||
      out.scope.service.empty() || out.scope.day.size() != 8) {
    return std::nullopt;
  }
  while (!names.empty()) {
    const std::string_view name = take_field(names, ';');
    const bool ascending = out.signed_headers.empty() || out.signed_headers.back() < name;
    if (name.empty() || !ascending || out.signed_headers.size() == kHeadersMax ||
        std::ranges::any_of(name, [](char c) { return c != lower(c); })) {
      return std::nullopt;
    }
    out.signed_headers.push_back(name);
  }
  if (out.signed_headers.empty()) return std::nullopt;
  return out;
}

std::string_view s3_code_of(CheckFailure failure) {
  switch (failure) {
    case CheckFailure::kMissing:
    case CheckFailure::kUnsignedHeader:
      return "AccessDenied";
    case CheckFailure::kMalformed:
    case CheckFailure::kWrongScope:
      return "AuthorizationHeaderMalformed";
    case CheckFailure::kUnknownKey:
      return "InvalidAccessKeyId";
    case CheckFailure::kClockSkew:
      return "RequestTimeTooSkewed";
    case CheckFailure::kExpiredToken:
      return "ExpiredToken";
    case CheckFailure::kBadToken:
      return "InvalidToken";
    case CheckFailure::kBadSignature:
      return "SignatureDoesNotMatch";
  }
  return "AccessDenied";
}

std::optional<CheckProblem> Checker::scope_problem(const Authorization& authorization,
                                                   std::string_view amz_date, WallTime now) const {
  const auto wrong = [](CheckFailure failure, std::string message) {
    return CheckProblem{.failure = failure, .message = std::move(message)};
  };
  const auto signed_at = parse_amz_date(amz_date);
  if (!signed_at) return wrong(CheckFailure::kMalformed, "x-amz-date is malformed");
  if (authorization.scope.day != amz_date.substr(0, 8)) {
    return wrong(CheckFailure::kWrongScope, "the scope's day differs from x-amz-date");
  }
  if (authorization.scope.service != options_.service) {
    return wrong(CheckFailure::kWrongScope, "the scope's service must be " + options_.service);
  }
  if (!options_.region.empty() && authorization.scope.region != options_.region) {
    return wrong(CheckFailure::kWrongScope, "the region must be '" + options_.region + "'");
  }
  const auto skew = *signed_at > now ? *signed_at - now : now - *signed_at;
  if (skew > options_.skew_max) {
    return wrong(CheckFailure::kClockSkew, "request time " + format_iso8601(*signed_at) +
                                               ", server time " + format_iso8601(now) +
                                               ": too far apart");
  }
  return std::nullopt;
}

std::expected<CheckedRequest, CheckProblem> Checker::check(const RequestView& request,
                                                           WallTime now) {
  const HeaderView* header = find_header(request.headers, "authorization");
  if (header == nullptr) return problem(CheckFailure::kMissing, "the request is not signed");
  const auto authorization = parse_authorization(header->value);
  if (!authorization) return problem(CheckFailure::kMalformed, "Authorization is malformed");
  const HeaderView* date = find_header(request.headers, "x-amz-date");
  if (date == nullptr) return problem(CheckFailure::kMissing, "x-amz-date is missing");
  const HeaderView* payload = find_header(request.headers, "x-amz-content-sha256");
  if (payload == nullptr ||
      (payload->value != kUnsignedPayload && !is_hex_sha256(payload->value))) {
    return problem(CheckFailure::kMalformed, "x-amz-content-sha256 is missing or malformed");
  }
  const Credentials* credentials = lookup_(authorization->access_key_id);
  if (credentials == nullptr) {
    return problem(CheckFailure::kUnknownKey, "this access key id is not known");
  }
  if (auto found = scope_problem(*authorization, date->value, now)) {
    return std::unexpected(std::move(*found));
  }
  const HeaderView* token = find_header(request.headers, "x-amz-security-token");
  const std::string_view token_text = token == nullptr ? std::string_view{} : token->value;
  if (!digest::equal_in_constant_time(bytes_of(token_text),
                                      bytes_of(credentials->session_token.reveal()))) {
    return problem(CheckFailure::kBadToken, "the session token is not that of the key");
  }

  headers_.clear();
  bool host_signed = false;
  for (const HeaderView& h : request.headers) {
    const auto names = [&](std::string_view name) { return equal_ignoring_case(name, h.name); };
    if (std::ranges::any_of(authorization->signed_headers, names)) {
      headers_.push_back(h);
      host_signed = host_signed || equal_ignoring_case(h.name, "host");
    } else if (must_be_signed(h.name)) {
      return problem(CheckFailure::kUnsignedHeader,
                     "a header is not signed: " + std::string(h.name));
    }
  }
  if (!host_signed) return problem(CheckFailure::kUnsignedHeader, "a header is not signed: host");
  sort_headers(headers_);
  canonical_.clear();
  RequestView view = request;
  view.payload_hash = payload->value;
  if (!append_canonical_request(canonical_, view, headers_)) {
    return problem(CheckFailure::kMalformed, "the path or query has a stray '%'");
  }
  // A name that is listed but not sent would be left out here, and so not match.
  const std::string expected =
      key_.sign(*credentials, authorization->scope, date->value, canonical_);
  if (!digest::equal_in_constant_time(bytes_of(expected), bytes_of(authorization->signature))) {
    return problem(CheckFailure::kBadSignature,
                   "the signature does not match; check the secret key, and whether a proxy "
                   "changes the path, query or headers");
  }
  if (credentials->expires_at && now >= *credentials->expires_at) {
    return problem(CheckFailure::kExpiredToken, "the credentials have ended");
  }
  return CheckedRequest{.access_key_id = std::string(authorization->access_key_id),
                        .payload_sha256_hex = payload->value == kUnsignedPayload
                                                  ? std::string()
                                                  : std::string(payload->value)};
}

}  // namespace objectcache::s3
