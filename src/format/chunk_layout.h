#pragma once

#include <cstdint>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/namespace_spec.h"

namespace objectcache::format {

/// A range of bytes of one of the objects that hold a chunk's shard.
struct ByteRange {
  /// 0: the main object, which carries the header. Layer-object layout only: l > 0 names the
  /// object of layer l (ObjectNames::object).
  std::uint32_t object_layer = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// What to read of a chunk: layers [first_layer, first_layer + layer_count), and of each of them
/// the units [first_unit, first_unit + unit_count).
struct SliceSpan {
  std::uint32_t first_layer = 0;
  std::uint32_t layer_count = 1;
  std::uint32_t first_unit = 0;
  std::uint32_t unit_count = 1;
};

inline constexpr std::uint32_t kHeaderAlignBytes = 4096;
inline constexpr std::uint32_t kHeaderFixedBytes = 160;
inline constexpr std::uint32_t kUnitKeyBytes = 32;
inline constexpr std::uint32_t kUnitRecordBytes = 8;

/// The size of a header, padding included. Requires counts within NamespaceSpec's limits.
[[nodiscard]] constexpr std::uint32_t padded_header_bytes(std::uint32_t layers,
                                                          std::uint32_t units) {
  const std::uint32_t used =
      kHeaderFixedBytes + kUnitKeyBytes * units + kUnitRecordBytes * layers * units;
  return (used + kHeaderAlignBytes - 1) / kHeaderAlignBytes * kHeaderAlignBytes;
}

/// Where the bytes of a chunk lie, computed from its namespace: every slice is a known range, so
/// that a layer read needs no index (docs/formats/chunk_object.md).
///
/// Chunk layout: one object, [header padded to 4 KiB][slice 0][slice 1]...
/// Layer layout: object 0 is [header][slice 0]; object l is the bare slice l.
/// A slice is its units in token order, without padding.
///
/// Immutable after create(). Threads: any. Holds 8 bytes a layer.
class ChunkLayout {
 public:
  /// Fails where validate(spec) fails.
  static Result<ChunkLayout> create(const NamespaceSpec& spec);

  [[nodiscard]] ObjectLayout object_layout() const { return object_layout_; }
  [[nodiscard]] std::uint32_t layers() const { return layers_; }
  [[nodiscard]] std::uint32_t unit_tokens() const { return unit_tokens_; }
  [[nodiscard]] std::uint32_t units() const { return units_; }  ///< Per chunk.
  [[nodiscard]] std::uint32_t chunk_tokens() const { return unit_tokens_ * units_; }
  /// Padded; a multiple of 4 KiB.
  [[nodiscard]] std::uint32_t header_bytes() const { return header_bytes_; }
  /// One layer of one unit: the smallest piece with a checksum. Requires layer < layers().
  [[nodiscard]] std::uint64_t unit_bytes(std::uint32_t layer) const {
    return (starts_[layer + 1] - starts_[layer]) / units_;
  }
  [[nodiscard]] std::uint64_t slice_bytes(std::uint32_t layer) const {
    return starts_[layer + 1] - starts_[layer];
  }
  /// All slices of a chunk, without the header.
  [[nodiscard]] std::uint64_t payload_bytes() const { return starts_.back() - header_bytes_; }

  /// How many objects hold one shard of a chunk: 1, or one a layer.
  [[nodiscard]] std::uint32_t object_count() const {
    return object_layout_ == ObjectLayout::kChunk ? 1 : layers_;
  }
  /// The size of one of them. Requires object_layer < object_count().
  [[nodiscard]] std::uint64_t object_bytes(std::uint32_t object_layer) const;
  /// Where slice `layer` starts inside the object that holds it.
  [[nodiscard]] std::uint64_t slice_offset(std::uint32_t layer) const;

  /// The widest layer_count that one range can cover from `first_layer` on: all that are left in
  /// chunk layout, 1 in layer layout.
  [[nodiscard]] std::uint32_t layers_per_range_max(std::uint32_t first_layer) const;

  /// The one range that covers `span`. It begins at byte 0, header included, when the span begins
  /// at layer 0 and unit 0. When the span leaves out units and covers several layers, the units
  /// between them are part of the range: the reader sends that surplus to scratch.
  /// kInvalidArgument: an empty span, or one beyond the chunk or beyond layers_per_range_max().
  [[nodiscard]] Result<ByteRange> locate(const SliceSpan& span) const;
  /// The header alone.
  [[nodiscard]] ByteRange header_range() const {
    return {.object_layer = 0, .offset = 0, .length = header_bytes_};
  }

 private:
  ChunkLayout() = default;

  ObjectLayout object_layout_ = ObjectLayout::kChunk;
  std::uint32_t layers_ = 0;
  std::uint32_t unit_tokens_ = 0;
  std::uint32_t units_ = 0;
  std::uint32_t header_bytes_ = 0;
  std::vector<std::uint64_t> starts_;  ///< Of each slice in chunk layout; L + 1 entries.
};

}  // namespace objectcache::format
