#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include "objectcache/types.h"

namespace objectcache::digest {

using Sha256Bytes = std::array<std::byte, 32>;

/// The bytes of a text, without its terminator.
[[nodiscard]] inline ConstSegment bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// SHA-256 of one piece, or of several pieces as if they lay one after the other.
/// Threads: any. Costs well under a microsecond for short inputs: each thread keeps one context.
[[nodiscard]] Sha256Bytes sha256(ConstSegment data) noexcept;
[[nodiscard]] Sha256Bytes sha256(std::span<const ConstSegment> pieces) noexcept;
[[nodiscard]] inline Sha256Bytes sha256(std::initializer_list<ConstSegment> pieces) noexcept {
  return sha256(std::span<const ConstSegment>(pieces.begin(), pieces.size()));
}

/// HMAC-SHA256 (RFC 2104) of the pieces as if they lay one after the other. A key may have any
/// length. Threads: any.
[[nodiscard]] Sha256Bytes hmac_sha256(ConstSegment key, ConstSegment data) noexcept;
[[nodiscard]] Sha256Bytes hmac_sha256(ConstSegment key,
                                      std::span<const ConstSegment> pieces) noexcept;
[[nodiscard]] inline Sha256Bytes hmac_sha256(ConstSegment key,
                                             std::initializer_list<ConstSegment> pieces) noexcept {
  return hmac_sha256(key, std::span<const ConstSegment>(pieces.begin(), pieces.size()));
}

/// True if both have the same content; the time does not depend on where they differ, so that a
/// signature cannot be guessed byte by byte.
[[nodiscard]] bool equal_in_constant_time(ConstSegment a, ConstSegment b) noexcept;

class DigestContext;

/// SHA-256 of data that arrives in pieces.
///
/// Threads: one at a time. Movable; a moved-from object may only be destroyed or assigned to.
class Sha256 {
 public:
  Sha256() noexcept;
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(ConstSegment data) noexcept;
  /// The digest of everything since construction or the previous finish(); the object is then as
  /// new and may be used again.
  [[nodiscard]] Sha256Bytes finish() noexcept;

 private:
  std::unique_ptr<DigestContext> context_;
};

}  // namespace objectcache::digest
