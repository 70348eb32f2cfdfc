#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "objectcache/export.h"
#include "objectcache/shard.h"

namespace objectcache {

/// Monotonic time. Deadlines are absolute; every call that may wait takes one.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

/// A piece of the caller's memory that a read fills, or that a write sends. Not owned.
using Segment = std::span<std::byte>;
using ConstSegment = std::span<const std::byte>;

/// Token ids as the engine counts them.
using TokenId = std::uint32_t;

/// 32 bytes that name something; the tag keeps different kinds of names from being swapped.
template <class Tag>
struct Digest {
  std::array<std::byte, 32> bytes{};

  friend auto operator<=>(const Digest&, const Digest&) = default;
  /// 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out(64, '0');
    for (std::size_t i = 0; i < 32; ++i) {
      const auto b = std::to_integer<unsigned>(bytes[i]);
      out[2 * i] = kDigits[b >> 4];
      out[2 * i + 1] = kDigits[b & 15U];
    }
    return out;
  }
  /// Empty unless `text` is exactly 64 lower-case hexadecimal digits.
  [[nodiscard]] static std::optional<Digest> from_hex(std::string_view text) {
    if (text.size() != 64) return std::nullopt;
    Digest out;
    for (std::size_t i = 0; i < 64; ++i) {
      const char c = text[i];
      unsigned v = 0;
      if (c >= '0' && c <= '9') {
        v = static_cast<unsigned>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        v = static_cast<unsigned>(c - 'a') + 10U;
      } else {
        return std::nullopt;
      }
      out.bytes[i / 2] = static_cast<std::byte>((std::to_integer<unsigned>(out.bytes[i / 2]) << 4) | v);
    }
    return out;
  }
};

/// Names a unit of U tokens and everything before it.
using UnitKey = Digest<struct UnitKeyTag>;
/// Names a chunk of G tokens and everything before it: the key of its last unit.
using ChunkKey = Digest<struct ChunkKeyTag>;
/// The digest of all that must agree before two chunks may be exchanged.
using NamespaceDigest = Digest<struct NamespaceDigestTag>;

[[nodiscard]] inline ChunkKey chunk_key_of(const UnitKey& last_unit) { return {last_unit.bytes}; }

}  // namespace objectcache
