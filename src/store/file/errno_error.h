#pragma once

#include <string_view>

#include "store/request_checks.h"

namespace objectcache::store {

/// The error of a system call that failed with `errno_value`. `step` says which: "open", "write".
[[nodiscard]] Error errno_error(const CallName& name, std::string_view step, int errno_value);

}  // namespace objectcache::store
