#pragma once

#include <cstdint>
#include <vector>

#include "objectcache/layer_stream.h"
#include "stream/read_shape.h"

namespace objectcache::stream {

/// Tells where in the caller's memory the bytes of a slice belong.
///
/// Immutable after create(). Threads: any. The memory and the shape's layout must outlive it.
class DestinationMap {
 public:
  /// kInvalidArgument: a destination that does not fit the read; says which layer and chunk needs
  /// how many bytes.
  [[nodiscard]] static Result<DestinationMap> create(const ReadShape& shape,
                                                     Destination destination);

  /// Appends the memory of bytes [offset, offset + length) of the slice (layer, chunk).
  /// Requires: the range lies within the bytes wanted of that slice.
  void append(std::uint32_t chunk, std::uint32_t layer, std::uint64_t offset, std::uint64_t length,
              std::vector<Segment>& out) const;

 private:
  DestinationMap(const ReadShape& shape, Destination destination)
      : shape_(shape), destination_(std::move(destination)) {}
  [[nodiscard]] Result<void> check_contiguous() const;
  [[nodiscard]] Result<void> check_scattered() const;

  ReadShape shape_;
  Destination destination_;
};

}  // namespace objectcache::stream
