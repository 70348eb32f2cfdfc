#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "objectcache/error.h"
#include "s3/http_date.h"
#include "s3/xml.h"

namespace objectcache::s3 {

/// An answer that is not a success, as far as it tells what happened. Fill in what is known.
struct FailedAnswer {
  int status = 0;
  ErrorDocument document;           ///< Of the body; empty fields for HEAD and foreign bodies.
  std::string_view request_id;      ///< x-amz-request-id
  std::string_view bucket_region;   ///< x-amz-bucket-region
  std::string_view location;        ///< Location
  std::string_view date;            ///< Date: the server's clock
  std::string_view retry_after;     ///< Retry-After
  WallTime now{};                   ///< The client's clock.
  std::string_view signing_region;  ///< The region that the request was signed for.
};

/// What a client does about it beyond passing the error on.
enum class FailureKind : std::uint8_t {
  kError,               ///< Nothing special: `error.code` says whether to retry.
  kMissing,             ///< No such object: a miss, not an error. (HEAD cannot tell a missing
                        ///< bucket from it.)
  kBucketMissing,       ///< kNotFound: the bucket is not there.
  kPreconditionFailed,  ///< 412: If-None-Match or If-Match did not hold.
  kWriteRace,           ///< 409: another conditional write of this key is under way. Retryable.
  kOutOfRange,          ///< 416.
  kWrongRegion,         ///< Sign for `right_region` or ask `right_endpoint`, if told.
  kClockSkew,           ///< Sign with the clock moved by `clock_offset`, if told.
  kCredentialsExpired,  ///< Fetch new credentials, then once more.
};

struct FailureMeaning {
  FailureKind kind = FailureKind::kError;
  Error error;  ///< With cause, advice, S3's code, request id and status; without action and key.
  bool retryable = false;                            ///< The same request may succeed later.
  std::optional<std::chrono::seconds> retry_after;   ///< As asked by the server; at most an hour.
  std::string right_region;                          ///< Empty: not told.
  std::string right_endpoint;                        ///< Empty: not told.
  std::optional<std::chrono::seconds> clock_offset;  ///< The server's clock minus ours.
};

/// Total: understands every status and code, if need be as kUnavailable (5xx) or kInvalidArgument.
[[nodiscard]] FailureMeaning meaning_of(const FailedAnswer& answer);

/// For the failures inside an answer to DeleteObjects, which have a code but no status.
[[nodiscard]] FailureMeaning meaning_of(const DeleteFailure& failure);

}  // namespace objectcache::s3
