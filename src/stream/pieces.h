#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "objectcache/error.h"
#include "plan/read_planner.h"
#include "stream/read_shape.h"

namespace objectcache::stream {

/// Turns the ranges of a plan into pieces. Ranges of the last chunk are narrowed where reading
/// over units that are not wanted would cost more than `surplus_bytes_max`.
/// kInvalidArgument: ranges beyond the read or the layout, or a (chunk, layer) that is not in the
/// order exactly once.
/// The units of a range are those of the read, whatever it says itself.
[[nodiscard]] Result<std::vector<Piece>> pieces_of(const ReadShape& shape,
                                                   std::span<const plan::RangeRead> order,
                                                   std::uint64_t surplus_bytes_max);

}  // namespace objectcache::stream
