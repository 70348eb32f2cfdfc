#pragma once

#include <cstddef>
#include <cstdint>

#include "store/segment_cursor.h"

namespace objectcache::store {

/// Reads `bytes` at `offset` of a file straight into the next segments. 0, or errno; ENODATA where
/// the file ends early.
[[nodiscard]] int read_into(int file, std::uint64_t offset, SegmentCursor& to, std::size_t bytes);

/// Writes the next `bytes` of the segments at `offset`. 0, or errno.
[[nodiscard]] int write_from(int file, std::uint64_t offset, ConstSegmentCursor& from,
                             std::size_t bytes);

}  // namespace objectcache::store
