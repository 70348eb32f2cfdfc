#include "format/chunk_layout.h"

#include <fmt/format.h>

namespace objectcache::format {

Result<ChunkLayout> ChunkLayout::create(const NamespaceSpec& spec) {
  if (auto ok = validate(spec); !ok) return std::unexpected(std::move(ok).error());
  ChunkLayout layout;
  layout.object_layout_ = spec.object_layout;
  layout.layers_ = spec.layers;
  layout.unit_tokens_ = spec.unit_tokens;
  layout.units_ = spec.units_per_chunk();
  layout.header_bytes_ = padded_header_bytes(layout.layers_, layout.units_);
  layout.starts_.reserve(layout.layers_ + 1U);
  std::uint64_t start = layout.header_bytes_;
  for (std::uint32_t layer = 0; layer < layout.layers_; ++layer) {
    layout.starts_.push_back(start);
    start += spec.slice_bytes(layer);
  }
  layout.starts_.push_back(start);
  return layout;
}

std::uint64_t ChunkLayout::object_bytes(std::uint32_t object_layer) const {
  if (object_layout_ == ObjectLayout::kChunk) return starts_.back();
  return slice_offset(object_layer) + slice_bytes(object_layer);
}

std::uint64_t ChunkLayout::slice_offset(std::uint32_t layer) const {
  if (object_layout_ == ObjectLayout::kChunk) return starts_[layer];
  return layer == 0 ? header_bytes_ : 0;
}

std::uint32_t ChunkLayout::layers_per_range_max(std::uint32_t first_layer) const {
  if (first_layer >= layers_) return 0;
  return object_layout_ == ObjectLayout::kChunk ? layers_ - first_layer : 1;
}

Result<ByteRange> ChunkLayout::locate(const SliceSpan& span) const {
  // Written so that no sum can overflow.
  const bool units_fit = span.unit_count >= 1 && span.first_unit < units_ &&
                         span.unit_count <= units_ - span.first_unit;
  if (span.layer_count < 1 || span.layer_count > layers_per_range_max(span.first_layer) ||
      !units_fit) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("layers {}+{} and units {}+{} are no range of a chunk of {} layers and "
                    "{} units{}",
                    span.first_layer, span.layer_count, span.first_unit, span.unit_count, layers_,
                    units_,
                    object_layout_ == ObjectLayout::kLayer ? " with one object a layer" : ""),
        "locate slices");
  }
  const std::uint32_t last_layer = span.first_layer + span.layer_count - 1;
  const std::uint64_t first =
      span.first_layer == 0 && span.first_unit == 0
          ? 0
          : slice_offset(span.first_layer) + span.first_unit * unit_bytes(span.first_layer);
  const std::uint64_t end =
      slice_offset(last_layer) +
      std::uint64_t{span.first_unit + span.unit_count} * unit_bytes(last_layer);
  return ByteRange{.object_layer = object_layout_ == ObjectLayout::kChunk ? 0 : span.first_layer,
                   .offset = first,
                   .length = end - first};
}

}  // namespace objectcache::format
