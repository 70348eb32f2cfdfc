#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "objectcache/types.h"

namespace objectcache::store {

/// Walks once through a list of segments as if they were one piece of memory.
///
/// Threads: one at a time. The list must outlive it.
template <class Byte>  // std::byte or const std::byte
class BasicSegmentCursor {
 public:
  explicit BasicSegmentCursor(std::span<const std::span<Byte>> segments) : segments_(segments) {}

  /// The next contiguous piece of at most `bytes_max` bytes, and moves on behind it. Empty at the
  /// end.
  std::span<Byte> next(std::size_t bytes_max) {
    while (index_ < segments_.size() && offset_ == segments_[index_].size()) {
      ++index_;
      offset_ = 0;
    }
    if (index_ == segments_.size()) return {};
    const std::size_t size = std::min(bytes_max, segments_[index_].size() - offset_);
    return segments_[index_].subspan(std::exchange(offset_, offset_ + size), size);
  }

 private:
  std::span<const std::span<Byte>> segments_;
  std::size_t index_ = 0;
  std::size_t offset_ = 0;
};
using SegmentCursor = BasicSegmentCursor<std::byte>;
using ConstSegmentCursor = BasicSegmentCursor<const std::byte>;

/// Copies `from` to the next from.size() bytes of the segments.
inline void copy_out(SegmentCursor& to, ConstSegment from) {
  while (!from.empty()) {
    const Segment piece = to.next(from.size());
    if (piece.empty()) return;
    std::memcpy(piece.data(), from.data(), piece.size());
    from = from.subspan(piece.size());
  }
}
/// Fills `to` from the next to.size() bytes of the segments.
inline void copy_in(Segment to, ConstSegmentCursor& from) {
  while (!to.empty()) {
    const ConstSegment piece = from.next(to.size());
    if (piece.empty()) return;
    std::memcpy(to.data(), piece.data(), piece.size());
    to = to.subspan(piece.size());
  }
}

}  // namespace objectcache::store
