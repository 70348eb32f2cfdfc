#include "objectcache/error.h"

#include <fmt/format.h>

namespace objectcache {

std::string_view error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kPermissionDenied: return "permission_denied";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kIncompatible: return "incompatible";
    case ErrorCode::kConflict: return "conflict";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kThrottled: return "throttled";
    case ErrorCode::kDeadlineExceeded: return "deadline_exceeded";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kLimitExceeded: return "limit_exceeded";
    case ErrorCode::kOutOfSpace: return "out_of_space";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

bool is_retryable(ErrorCode code) noexcept {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kThrottled;
}

std::string Error::to_string() const {
  std::string out;
  if (!action.empty()) out += action;
  if (!key.empty()) {
    if (!out.empty()) out += ' ';
    out += key;
  }
  if (!out.empty()) out += ": ";
  out += error_code_name(code);
  if (http_status != 0 || !s3_code.empty()) {
    out += ": ";
    if (http_status != 0) out += fmt::format("HTTP {}", http_status);
    if (!s3_code.empty()) out += fmt::format("{}{}", http_status != 0 ? " " : "", s3_code);
    if (!request_id.empty()) out += fmt::format(" (request id {})", request_id);
  }
  if (!message.empty()) out += ": " + message;
  return out;
}

}  // namespace objectcache
