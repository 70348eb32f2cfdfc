#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "objectcache/export.h"

namespace objectcache {

/// What went wrong, as far as a caller would act differently. A miss is not an error.
/// The numbers are part of the C API and never change their meaning.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument = 1,   ///< The call or the configuration is wrong: mend it, do not retry.
  kNotFound = 2,          ///< A container is missing: the bucket, the directory, the file named.
  kPermissionDenied = 3,  ///< The store refuses these credentials or rights.
  kCorrupt = 4,           ///< Stored bytes fail their check. Recompute; `verify --repair` mends.
  kIncompatible = 5,      ///< The object is of another version, namespace, shard or key.
  kConflict = 6,          ///< The object changed while it was read.
  kUnavailable = 7,       ///< The store cannot be reached or answers 5xx. Retryable.
  kThrottled = 8,         ///< The store asks for fewer requests. Retryable.
  kDeadlineExceeded = 9,  ///< The caller's deadline passed first.
  kCancelled = 10,        ///< The caller cancelled.
  kLimitExceeded = 11,    ///< A stated limit of this process (memory, streams, queue) is reached.
  kOutOfSpace = 12,       ///< The store has no room.
  kUnsupported = 13,      ///< The store or this build cannot do it.
  kInternal = 14,         ///< A defect of ObjectCache.
};

/// "unavailable" for kUnavailable and so on; stable, used in JSON and metrics.
OBJECTCACHE_EXPORT std::string_view error_code_name(ErrorCode code) noexcept;

/// True where the same call may succeed later without any change by the caller.
OBJECTCACHE_EXPORT bool is_retryable(ErrorCode code) noexcept;

/// A failure: what was attempted, on what, and why it failed. Never holds a secret.
struct OBJECTCACHE_EXPORT Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;     ///< The cause and, where there is one, what to do about it.
  std::string action;      ///< What was attempted: "GET", "open", "decode header"...
  std::string key;         ///< On what: an object's URL, a path, an option's name.
  std::string s3_code;     ///< The store's own code ("SlowDown"), if it gave one.
  std::string request_id;  ///< The store's request id, if it gave one.
  int http_status = 0;     ///< 0: no HTTP answer was involved.

  /// One line: "GET s3://b/k: unavailable: 503 SlowDown (request id ...): cause".
  [[nodiscard]] std::string to_string() const;
};

template <class T>
using Result = std::expected<T, Error>;

/// Shorthand for a failed Result: `return fail(ErrorCode::kCorrupt, "bad magic");`.
[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string message,
                                                 std::string action = {}, std::string key = {}) {
  return std::unexpected(Error{.code = code,
                               .message = std::move(message),
                               .action = std::move(action),
                               .key = std::move(key),
                               .s3_code = {},
                               .request_id = {},
                               .http_status = 0});
}

}  // namespace objectcache
