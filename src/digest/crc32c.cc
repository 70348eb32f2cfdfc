#include "digest/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace objectcache::digest {

std::uint32_t crc32c_extend(std::uint32_t crc, std::span<const std::byte> data) noexcept {
  // ISA-L leaves both inversions of the definition to the caller, counts in int, and takes a
  // pointer to non-const that it only reads.
  constexpr std::size_t kPieceBytes = std::size_t{1} << 30;
  std::uint32_t state = ~crc;
  while (!data.empty()) {
    const auto piece = data.first(std::min(data.size(), kPieceBytes));
    auto* bytes = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
    state = crc32_iscsi(bytes, static_cast<int>(piece.size()), state);
    data = data.subspan(piece.size());
  }
  return ~state;
}

}  // namespace objectcache::digest
