#include "s3/error_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace objectcache::s3 {
namespace {

using std::chrono::seconds;
using Code = ErrorCode;
using Kind = FailureKind;

struct Rule {
  std::string_view s3_code;
  Kind kind;
  ErrorCode code;
  std::string_view advice;
};

constexpr std::string_view kSlowDown =
    "the store asks for fewer requests; lower the request rate or the number of connections";
constexpr std::string_view kServerFault = "the store failed on its side; it may work again later";
constexpr std::string_view kWrongKey =
    "check the secret key, and whether a proxy changes the path, query or headers";
constexpr std::string_view kFull = "the store has no room; free space or raise the quota";
constexpr std::string_view kWrongRegionAdvice = "set the bucket's region or endpoint";
constexpr std::string_view kNewToken = "get new temporary credentials";

// What the code says; it is more exact than the status, which differs between servers.
constexpr Rule kRules[] = {
    {"NoSuchKey", Kind::kMissing, Code::kNotFound, "no such object"},
    {"NoSuchBucket", Kind::kBucketMissing, Code::kNotFound,
     "the bucket does not exist; create it or check its name"},
    {"PreconditionFailed", Kind::kPreconditionFailed, Code::kConflict,
     "a condition of the request did not hold"},
    {"ConditionalRequestConflict", Kind::kWriteRace, Code::kUnavailable,
     "another write of this key is under way"},
    {"OperationAborted", Kind::kWriteRace, Code::kUnavailable,
     "another operation on this key is under way"},
    {"InvalidRange", Kind::kOutOfRange, Code::kInvalidArgument,
     "the object is shorter than the range"},
    {"SlowDown", Kind::kError, Code::kThrottled, kSlowDown},
    {"Throttling", Kind::kError, Code::kThrottled, kSlowDown},
    {"ThrottlingException", Kind::kError, Code::kThrottled, kSlowDown},
    {"RequestLimitExceeded", Kind::kError, Code::kThrottled, kSlowDown},
    {"TooManyRequests", Kind::kError, Code::kThrottled, kSlowDown},
    {"BandwidthLimitExceeded", Kind::kError, Code::kThrottled, kSlowDown},
    {"ServiceUnavailable", Kind::kError, Code::kUnavailable, kServerFault},
    {"InternalError", Kind::kError, Code::kUnavailable, kServerFault},
    {"RequestTimeout", Kind::kError, Code::kUnavailable,
     "the store waited too long for the request's bytes"},
    {"BadDigest", Kind::kError, Code::kCorrupt, "the body was damaged on its way to the store"},
    {"XAmzContentSHA256Mismatch", Kind::kError, Code::kCorrupt,
     "the body was damaged on its way to the store"},
    {"IncompleteBody", Kind::kError, Code::kUnavailable, "the body did not arrive whole"},
    {"RequestTimeTooSkewed", Kind::kClockSkew, Code::kPermissionDenied, "set the clock"},
    {"RequestExpired", Kind::kClockSkew, Code::kPermissionDenied, "set the clock"},
    {"ExpiredToken", Kind::kCredentialsExpired, Code::kPermissionDenied, kNewToken},
    {"ExpiredTokenException", Kind::kCredentialsExpired, Code::kPermissionDenied, kNewToken},
    {"TokenRefreshRequired", Kind::kCredentialsExpired, Code::kPermissionDenied, kNewToken},
    {"InvalidToken", Kind::kCredentialsExpired, Code::kPermissionDenied, kNewToken},
    {"SignatureDoesNotMatch", Kind::kError, Code::kPermissionDenied, kWrongKey},
    {"InvalidAccessKeyId", Kind::kError, Code::kPermissionDenied,
     "the store does not know this access key id; check it and the endpoint"},
    {"AccessDenied", Kind::kError, Code::kPermissionDenied,
     "these credentials lack the right; check the bucket's policy and the key's rights"},
    {"AllAccessDisabled", Kind::kError, Code::kPermissionDenied, "the bucket is closed"},
    {"AccountProblem", Kind::kError, Code::kPermissionDenied, "the account is closed"},
    {"PermanentRedirect", Kind::kWrongRegion, Code::kInvalidArgument, kWrongRegionAdvice},
    {"TemporaryRedirect", Kind::kWrongRegion, Code::kUnavailable, kWrongRegionAdvice},
    {"Redirect", Kind::kWrongRegion, Code::kUnavailable, kWrongRegionAdvice},
    {"AuthorizationHeaderMalformed", Kind::kWrongRegion, Code::kInvalidArgument,
     kWrongRegionAdvice},
    {"IllegalLocationConstraintException", Kind::kWrongRegion, Code::kInvalidArgument,
     kWrongRegionAdvice},
    {"EntityTooLarge", Kind::kError, Code::kInvalidArgument,
     "the object is larger than the store allows; use smaller chunks"},
    {"EntityTooSmall", Kind::kError, Code::kInvalidArgument,
     "the object is smaller than the store allows"},
    {"KeyTooLongError", Kind::kError, Code::kInvalidArgument,
     "the object's name is too long for this store; use a shorter prefix"},
    {"QuotaExceeded", Kind::kError, Code::kOutOfSpace, kFull},
    {"InsufficientStorage", Kind::kError, Code::kOutOfSpace, kFull},
    {"XMinioStorageFull", Kind::kError, Code::kOutOfSpace, kFull},
    {"NotImplemented", Kind::kError, Code::kUnsupported, "the store cannot do this"},
    {"MethodNotAllowed", Kind::kError, Code::kUnsupported, "the store does not allow this here"},
};

// For answers without a code, or with one that is not in the table.
Rule rule_of_status(int status) {
  switch (status) {
    case 301:
    case 302:
    case 308:
      return {"", Kind::kWrongRegion, Code::kInvalidArgument, kWrongRegionAdvice};
    case 307:
      return {"", Kind::kWrongRegion, Code::kUnavailable, kWrongRegionAdvice};
    case 400:
      return {"", Kind::kError, Code::kInvalidArgument, "the store refuses the request"};
    case 401:
    case 403:
      return {"", Kind::kError, Code::kPermissionDenied,
              "the store refuses these credentials, or a proxy stands before it"};
    case 404:
      return {"", Kind::kMissing, Code::kNotFound, "no such object"};
    case 405:
    case 501:
      return {"", Kind::kError, Code::kUnsupported, "the store cannot do this"};
    case 408:
      return {"", Kind::kError, Code::kUnavailable, "the store waited too long"};
    case 409:
      return {"", Kind::kWriteRace, Code::kUnavailable, "another write is under way"};
    case 412:
      return {"", Kind::kPreconditionFailed, Code::kConflict,
              "a condition of the request did not hold"};
    case 413:
      return {"", Kind::kError, Code::kInvalidArgument, "the object is too large"};
    case 416:
      return {"", Kind::kOutOfRange, Code::kInvalidArgument,
              "the object is shorter than the range"};
    case 429:
      return {"", Kind::kError, Code::kThrottled, kSlowDown};
    case 503:
      return {"", Kind::kError, Code::kUnavailable, kServerFault};
    case 507:
      return {"", Kind::kError, Code::kOutOfSpace, kFull};
    default:
      break;
  }
  if (status >= 500 && status <= 599) return {"", Kind::kError, Code::kUnavailable, kServerFault};
  if (status >= 400 && status <= 499) {
    return {"", Kind::kError, Code::kInvalidArgument, "the store refuses the request"};
  }
  return {"", Kind::kError, Code::kUnavailable, "not an answer that S3 gives; check the endpoint"};
}

Rule rule_of(int status, std::string_view s3_code) {
  for (const Rule& rule : kRules) {
    if (rule.s3_code == s3_code) return rule;
  }
  return rule_of_status(status);
}

// Foreign text for a message: short and on one line.
std::string quoted(std::string_view text) {
  std::string out(text.substr(0, 300));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, ' ');
  return out;
}

std::string joined(std::string_view cause, std::string_view advice) {
  return cause.empty() ? std::string(advice) : fmt::format("{} ({})", quoted(cause), advice);
}

std::optional<seconds> parse_retry_after(std::string_view text, WallTime now) {
  constexpr seconds kMax = std::chrono::hours(1);
  unsigned count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (!text.empty() && error == std::errc{} && end == text.data() + text.size()) {
    return std::min(seconds(count), kMax);
  }
  const auto date = parse_http_date(text);
  if (!date) return std::nullopt;
  return std::clamp(std::chrono::ceil<seconds>(*date - now), seconds(0), kMax);
}

void explain_region(const FailedAnswer& answer, FailureMeaning& out) {
  out.right_region =
      quoted(answer.document.region.empty() ? answer.bucket_region : answer.document.region);
  out.right_endpoint =
      quoted(answer.document.endpoint.empty() ? answer.location : answer.document.endpoint);
  // Malformed for another reason than the region: the text of the store says which.
  if (answer.document.code == "AuthorizationHeaderMalformed" && out.right_region.empty()) {
    out.kind = Kind::kError;
    out.error.message = joined(answer.document.message, "check the region and the credentials");
    return;
  }
  std::string text = "the bucket is elsewhere";
  if (!answer.signing_region.empty()) {
    text += fmt::format("; the request was signed for region '{}'", answer.signing_region);
  }
  if (!out.right_region.empty()) text += fmt::format("; set region={}", out.right_region);
  if (!out.right_endpoint.empty()) text += fmt::format("; the store names {}", out.right_endpoint);
  if (out.right_region.empty() && out.right_endpoint.empty()) {
    text += fmt::format("; {}", kWrongRegionAdvice);
  }
  out.error.message = std::move(text);
}

void explain_clocks(const FailedAnswer& answer, FailureMeaning& out) {
  auto server = parse_iso8601(answer.document.server_time);
  if (!server) server = parse_http_date(answer.date);
  if (!server) {
    out.error.message =
        fmt::format("this machine's clock says {} and the store disagrees; set the clock",
                    format_iso8601(answer.now));
    return;
  }
  out.clock_offset = std::chrono::round<seconds>(*server - answer.now);
  out.error.message =
      fmt::format("this machine's clock says {}, the store's {}: {} s apart; set the clock",
                  format_iso8601(answer.now), format_iso8601(*server),
                  std::chrono::abs(*out.clock_offset).count());
}

}  // namespace

FailureMeaning meaning_of(const FailedAnswer& answer) {
  Rule rule = rule_of(answer.status, answer.document.code);
  // RGW and others send SlowDown's status with other codes: Retry-After tells what is meant.
  if (answer.status == 503 && rule.code == Code::kUnavailable && !answer.retry_after.empty()) {
    rule = {rule.s3_code, rule.kind, Code::kThrottled, kSlowDown};
  }
  FailureMeaning out{.kind = rule.kind,
                     .error = {},
                     .retryable = is_retryable(rule.code),
                     .retry_after = parse_retry_after(answer.retry_after, answer.now),
                     .right_region = {},
                     .right_endpoint = {},
                     .clock_offset = {}};
  out.error.code = rule.code;
  out.error.message = joined(answer.document.message, rule.advice);
  out.error.s3_code = quoted(answer.document.code);
  out.error.request_id =
      quoted(answer.document.request_id.empty() ? answer.request_id : answer.document.request_id);
  out.error.http_status = answer.status;
  if (rule.kind == Kind::kWrongRegion) explain_region(answer, out);
  if (rule.kind == Kind::kClockSkew) explain_clocks(answer, out);
  return out;
}

FailureMeaning meaning_of(const DeleteFailure& failure) {
  FailedAnswer answer;
  answer.status = 500;  // what a code that is not in the table amounts to
  answer.document.code = failure.code;
  answer.document.message = failure.message;
  FailureMeaning out = meaning_of(answer);
  out.error.http_status = 0;
  return out;
}

}  // namespace objectcache::s3
