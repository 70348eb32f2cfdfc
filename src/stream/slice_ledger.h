#pragma once

#include <cstdint>
#include <vector>

#include "format/chunk_header.h"
#include "stream/read_shape.h"

namespace objectcache::stream {

/// Keeps the books of one read: which unit slices have arrived, what their checksum is, which are
/// verified, and so which layers are complete. Checksums that come before their chunk's header
/// wait here, in the place that the header's own value takes later.
///
/// Pure. Threads: one at a time. Holds 5 bytes a unit slice and 4 a layer.
class SliceLedger {
 public:
  enum class Verdict : std::uint8_t {
    kWaits,     ///< The header is not known yet.
    kGood,      ///< Verified.
    kBad,       ///< Differs from the header, for the first time: read it once more.
    kBadAgain,  ///< Differs once more.
  };

  explicit SliceLedger(const ReadShape& shape);

  /// All bytes of the unit slice are in place and have this checksum.
  /// Requires: the unit is wanted, its layer not complete.
  [[nodiscard]] Verdict arrived(std::uint32_t chunk, std::uint32_t slice, std::uint32_t crc32c);
  /// The chunk's header is known. Slices that arrived before and differ are appended to `bad` in
  /// ascending order, those for the second time to `bad_again`.
  void set_header(std::uint32_t chunk, const format::ChunkHeader& header,
                  std::vector<std::uint32_t>& bad, std::vector<std::uint32_t>& bad_again);
  /// Forgets all about a chunk: its header and what arrived. Requires: no layer is complete.
  void restart(std::uint32_t chunk);

  [[nodiscard]] bool has_header(std::uint32_t chunk) const { return has_header_[chunk] != 0; }
  [[nodiscard]] bool is_verified(std::uint32_t chunk, std::uint32_t slice) const {
    return (states_[index(chunk, slice)] & kVerified) != 0;
  }
  /// Layers 0 to n - 1 are complete. Never shrinks.
  [[nodiscard]] std::uint32_t complete_layers() const { return complete_layers_; }
  /// Unit slices of the layer that are not verified.
  [[nodiscard]] std::uint32_t missing_slices(std::uint32_t layer) const { return missing_[layer]; }
  /// Unit slices of one layer, all chunks.
  [[nodiscard]] std::uint32_t layer_slices() const {
    return (shape_.chunks() - 1) * shape_.units() + shape_.units_wanted(shape_.chunks() - 1);
  }

 private:
  // Bits of a unit slice's state.
  static constexpr std::uint8_t kArrived = 1;  // crcs_ holds what was computed.
  static constexpr std::uint8_t kVerified = 2;
  static constexpr std::uint8_t kWasBad = 4;

  [[nodiscard]] std::size_t index(std::uint32_t chunk, std::uint32_t slice) const {
    return chunk * slices_per_chunk_ + slice;
  }
  Verdict judge(std::uint8_t& state, std::uint32_t layer, bool equal);

  ReadShape shape_;
  std::size_t slices_per_chunk_;
  std::vector<std::uint32_t> crcs_;  // Computed, then expected once the header is known.
  std::vector<std::uint8_t> states_;
  std::vector<std::uint8_t> has_header_;
  std::vector<std::uint32_t> missing_;  // By layer.
  std::uint32_t complete_layers_ = 0;
};

}  // namespace objectcache::stream
