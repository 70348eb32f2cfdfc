#include "stream/pieces.h"

#include <fmt/format.h>

#include "stream/transfer.h"

namespace objectcache::stream {
namespace {

Piece piece_of(const ReadShape& shape, const plan::RangeRead& range) {
  const std::uint32_t last_layer = range.first_layer + range.layer_count - 1;
  return {.chunk = range.chunk,
          .begin = shape.slice_index(range.first_layer, 0),
          .end = shape.slice_index(last_layer, shape.units_wanted(range.chunk)),
          .with_header = range.first_layer == 0};
}

std::uint64_t surplus_of(const ReadShape& shape, const Piece& piece) {
  const std::uint64_t header = piece.with_header ? shape.layout().header_bytes() : 0;
  return Transfer::scratch_bytes(shape, piece) - header;
}

Result<void> check(const ReadShape& shape, const plan::RangeRead& range) {
  const bool inside = range.chunk < shape.chunks() && range.layer_count > 0 &&
                      range.first_layer < shape.layers() &&
                      range.layer_count <= shape.layers() - range.first_layer;
  if (!inside || range.layer_count > shape.layout().layers_per_range_max(range.first_layer)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the plan asks for layers {} to {} of chunk {} in one range; the read "
                            "has {} chunks of {} layers",
                            range.first_layer, std::uint64_t{range.first_layer} + range.layer_count,
                            range.chunk, shape.chunks(), shape.layers()),
                "open stream", "plan");
  }
  return {};
}

}  // namespace

Result<std::vector<Piece>> pieces_of(const ReadShape& shape, std::span<const plan::RangeRead> order,
                                     std::uint64_t surplus_bytes_max) {
  std::vector<Piece> pieces;
  pieces.reserve(order.size());
  std::vector<bool> covered(std::size_t{shape.chunks()} * shape.layers());
  std::size_t covered_count = 0;
  for (plan::RangeRead range : order) {
    if (auto checked = check(shape, range); !checked) return std::unexpected(checked.error());
    for (std::uint32_t i = 0; i < range.layer_count; ++i) {
      auto bit = covered[std::size_t{range.chunk} * shape.layers() + range.first_layer + i];
      if (bit) {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("the plan reads layer {} of chunk {} twice", range.first_layer + i,
                                range.chunk),
                    "open stream", "plan");
      }
      bit = true;
      ++covered_count;
    }
    while (range.layer_count > 0) {
      plan::RangeRead part = range;
      while (part.layer_count > 1 && surplus_of(shape, piece_of(shape, part)) > surplus_bytes_max) {
        part.layer_count /= 2;
      }
      pieces.push_back(piece_of(shape, part));
      range.first_layer += part.layer_count;
      range.layer_count -= part.layer_count;
    }
  }
  if (covered_count != covered.size()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the plan leaves out {} of {} slices", covered.size() - covered_count,
                            covered.size()),
                "open stream", "plan");
  }
  return pieces;
}

}  // namespace objectcache::stream
