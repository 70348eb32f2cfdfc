#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace objectcache::digest {

/// MD5, only because S3 demands it: Content-MD5 of DeleteObjects, and the usual ETag. It protects
/// against accidents, not against anyone. Threads: any.
[[nodiscard]] std::array<std::byte, 16> md5(std::span<const std::byte> data) noexcept;

}  // namespace objectcache::digest
