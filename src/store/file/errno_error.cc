#include "store/file/errno_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace objectcache::store {
namespace {

struct Meaning {
  ErrorCode code;
  std::string_view advice;
};

Meaning meaning_of(int errno_value) {
  switch (errno_value) {
    case ENOENT:
      return {ErrorCode::kNotFound, ""};
    case EACCES:
    case EPERM:
      return {ErrorCode::kPermissionDenied, "; check the directory's owner and mode"};
    case EROFS:
      return {ErrorCode::kPermissionDenied, "; the directory can only be read"};
    case ELOOP:
      return {ErrorCode::kPermissionDenied,
              "; symbolic links below the store's directory are not followed"};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {ErrorCode::kOutOfSpace, "; free some space or lower the cache's limit"};
    case EMFILE:
    case ENFILE:
      return {ErrorCode::kLimitExceeded, "; raise the limit of open files (ulimit -n)"};
    case ENOMEM:
    case EAGAIN:
      return {ErrorCode::kLimitExceeded, ""};
    case ENAMETOOLONG:
      return {ErrorCode::kInvalidArgument, ""};
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
      return {ErrorCode::kIncompatible, "; a file that is not of this store is in the way"};
    default:
      return {ErrorCode::kUnavailable, ""};
  }
}

}  // namespace

Error errno_error(const CallName& name, std::string_view step, int errno_value) {
  const Meaning meaning = meaning_of(errno_value);
  return name.error(
      meaning.code,
      fmt::format("{}: {}{}", step, std::generic_category().message(errno_value), meaning.advice));
}

}  // namespace objectcache::store
