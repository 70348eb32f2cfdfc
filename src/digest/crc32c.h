#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace objectcache::digest {

/// CRC-32C (Castagnoli), as in RFC 3720 and as S3 means it: the value of "123456789" is
/// 0xe3069283. Runs at the speed of memory on CPUs with SSE4.2 and PCLMULQDQ.
///
/// crc32c_extend(crc32c(a), b) is the value of a followed by b; the value of nothing is 0.
/// Threads: any.
[[nodiscard]] std::uint32_t crc32c_extend(std::uint32_t crc,
                                          std::span<const std::byte> data) noexcept;
[[nodiscard]] inline std::uint32_t crc32c(std::span<const std::byte> data) noexcept {
  return crc32c_extend(0, data);
}

}  // namespace objectcache::digest
