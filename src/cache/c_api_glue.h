#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "objectcache/c.h"
#include "objectcache/cache.h"

// The handles of C are the handles of C++ in boxes. Every function that can fail goes through
// guarded(), which lets no exception cross.

struct oc_cache {
  std::unique_ptr<objectcache::Cache> cache;
};
struct oc_namespace {
  objectcache::CacheNamespace space;
};
struct oc_stream {
  objectcache::LayerStream stream;
};
struct oc_writer {
  objectcache::PrefixWriter writer;
};

/// What the sources of the C API share. Nobody else includes this.
namespace objectcache::c_api {

inline constexpr std::int64_t kTimeoutMsMax =
    1000LL * 60 * 60 * 24 * 365;  ///< Longer ones mean this.

inline std::int32_t tell(oc_error* out, std::int32_t code, bool retryable,
                         std::string_view text) noexcept {
  if (out != nullptr) {
    out->code = code;
    out->retryable = retryable ? 1 : 0;
    const std::size_t length = std::min(text.size(), sizeof out->message - 1);
    if (length > 0) std::memcpy(out->message, text.data(), length);
    out->message[length] = '\0';
  }
  return code;
}

inline std::int32_t tell(oc_error* out, const Error& error) {
  return tell(out, static_cast<std::int32_t>(error.code), is_retryable(error.code),
              error.to_string());
}

/// Runs `body`, which gives a Result<void>, and turns whatever comes of it into a code.
template <class Body>
std::int32_t guarded(oc_error* error, Body body) noexcept {
  try {
    const Result<void> result = body();
    if (result) return tell(error, OC_OK, false, {});
    return tell(error, result.error());
  } catch (const std::bad_alloc&) {
    return tell(error, OC_LIMIT_EXCEEDED, false, "out of memory");
  } catch (const std::exception& e) {
    return tell(error, OC_INTERNAL, false, e.what());
  } catch (...) {
    return tell(error, OC_INTERNAL, false, "unknown exception");
  }
}

inline std::unexpected<Error> missing(std::string_view what) {
  return fail(ErrorCode::kInvalidArgument, fmt::format("{} is NULL", what));
}

inline Result<TimePoint> deadline(std::int64_t timeout_ms) {
  if (timeout_ms < 0) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("timeout_ms is {}", timeout_ms));
  }
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(std::min(timeout_ms, kTimeoutMsMax));
}

template <class Key>
std::vector<Key> keys_from(const oc_key* keys, std::size_t count) {
  std::vector<Key> out(count);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(&out[i].bytes, keys[i].bytes, sizeof(Key));
  return out;
}

}  // namespace objectcache::c_api
