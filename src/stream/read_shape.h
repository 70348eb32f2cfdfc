#pragma once

#include <cstdint>

#include "format/chunk_layout.h"

namespace objectcache::stream {

/// Which bytes of how many chunks one read wants: all of each chunk, but of the last one perhaps
/// only its leading tokens. The unit in which those end is read and verified whole.
///
/// A "slice index" numbers the unit slices of a chunk in the order of storage:
/// layer * units per chunk + unit.
///
/// Immutable. Threads: any. The layout must outlive it.
class ReadShape {
 public:
  /// Requires: chunks > 0, last_chunk_tokens <= G; 0 tokens: all.
  ReadShape(const format::ChunkLayout& layout, std::uint32_t chunks,
            std::uint32_t last_chunk_tokens)
      : layout_(&layout),
        chunks_(chunks),
        last_tokens_(last_chunk_tokens == 0 ? layout.chunk_tokens() : last_chunk_tokens),
        last_units_((last_tokens_ + layout.unit_tokens() - 1) / layout.unit_tokens()) {}

  [[nodiscard]] const format::ChunkLayout& layout() const { return *layout_; }
  [[nodiscard]] std::uint32_t chunks() const { return chunks_; }
  [[nodiscard]] std::uint32_t layers() const { return layout_->layers(); }
  [[nodiscard]] std::uint32_t units() const { return layout_->units(); }
  /// Units of `chunk` that are read and verified.
  [[nodiscard]] std::uint32_t units_wanted(std::uint32_t chunk) const {
    return chunk + 1 == chunks_ ? last_units_ : layout_->units();
  }
  /// Bytes of one slice of `chunk` that go to the destination.
  [[nodiscard]] std::uint64_t bytes_wanted(std::uint32_t chunk, std::uint32_t layer) const {
    if (chunk + 1 != chunks_) return layout_->slice_bytes(layer);
    return layout_->unit_bytes(layer) / layout_->unit_tokens() * last_tokens_;
  }
  /// Bytes of one slice of `chunk` that are read.
  [[nodiscard]] std::uint64_t bytes_read(std::uint32_t chunk, std::uint32_t layer) const {
    return layout_->unit_bytes(layer) * units_wanted(chunk);
  }
  /// Bytes of one layer of all chunks that are read.
  [[nodiscard]] std::uint64_t layer_bytes_read(std::uint32_t layer) const {
    return layout_->slice_bytes(layer) * (chunks_ - 1) + bytes_read(chunks_ - 1, layer);
  }
  [[nodiscard]] std::uint32_t slice_index(std::uint32_t layer, std::uint32_t unit) const {
    return layer * layout_->units() + unit;
  }
  [[nodiscard]] std::uint32_t layer_of(std::uint32_t slice) const {
    return slice / layout_->units();
  }
  [[nodiscard]] std::uint32_t unit_of(std::uint32_t slice) const {
    return slice % layout_->units();
  }

 private:
  const format::ChunkLayout* layout_;
  std::uint32_t chunks_;
  std::uint32_t last_tokens_;
  std::uint32_t last_units_;
};

/// One range read: unit slices [begin, end) of one chunk, with the chunk's header in front or not.
/// Of several layers all units between begin and end are read, wanted or not.
struct Piece {
  std::uint32_t chunk = 0;
  std::uint32_t begin = 0;  ///< Slice index.
  std::uint32_t end = 0;    ///< Equal to begin: the header alone.
  bool with_header = false;
  friend bool operator==(const Piece&, const Piece&) = default;
};

}  // namespace objectcache::stream
