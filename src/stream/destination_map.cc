#include "stream/destination_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace objectcache::stream {

Result<DestinationMap> DestinationMap::create(const ReadShape& shape, Destination destination) {
  DestinationMap map(shape, std::move(destination));
  auto checked = map.destination_.is_contiguous() ? map.check_contiguous() : map.check_scattered();
  if (!checked) return std::unexpected(std::move(checked.error()));
  return map;
}

Result<void> DestinationMap::check_contiguous() const {
  const auto& areas = destination_.segments();
  if (areas.size() != shape_.layers()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the destination has {} areas for {} layers: give one a layer",
                            areas.size(), shape_.layers()),
                "open stream", "destination");
  }
  for (std::uint32_t layer = 0; layer < shape_.layers(); ++layer) {
    const std::uint64_t needed = shape_.layout().slice_bytes(layer) * (shape_.chunks() - 1) +
                                 shape_.bytes_wanted(shape_.chunks() - 1, layer);
    if (areas[layer].size() < needed) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("layer {} of {} chunks needs {} bytes, its area has {}", layer,
                              shape_.chunks(), needed, areas[layer].size()),
                  "open stream", "destination");
    }
  }
  return {};
}

Result<void> DestinationMap::check_scattered() const {
  const auto& starts = destination_.slice_starts();
  const auto& segments = destination_.segments();
  const std::size_t slices = std::size_t{shape_.layers()} * shape_.chunks();
  if (starts.size() != slices + 1 || starts.front() != 0 || starts.back() != segments.size() ||
      !std::ranges::is_sorted(starts)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("slice_starts needs {} ascending entries from 0 to the number of "
                            "segments, {}; it has {}",
                            slices + 1, segments.size(), starts.size()),
                "open stream", "destination");
  }
  for (std::uint32_t layer = 0; layer < shape_.layers(); ++layer) {
    for (std::uint32_t chunk = 0; chunk < shape_.chunks(); ++chunk) {
      const std::size_t slice = std::size_t{layer} * shape_.chunks() + chunk;
      std::uint64_t bytes = 0;
      for (std::uint32_t s = starts[slice]; s < starts[slice + 1]; ++s) bytes += segments[s].size();
      if (bytes != shape_.bytes_wanted(chunk, layer)) {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("layer {} of chunk {} needs {} bytes, its segments have {}", layer,
                                chunk, shape_.bytes_wanted(chunk, layer), bytes),
                    "open stream", "destination");
      }
    }
  }
  return {};
}

void DestinationMap::append(std::uint32_t chunk, std::uint32_t layer, std::uint64_t offset,
                            std::uint64_t length, std::vector<Segment>& out) const {
  if (length == 0) return;
  const auto& segments = destination_.segments();
  if (destination_.is_contiguous()) {
    const std::uint64_t start = shape_.layout().slice_bytes(layer) * chunk + offset;
    out.push_back(segments[layer].subspan(start, length));
    return;
  }
  const auto& starts = destination_.slice_starts();
  for (std::size_t s = starts[std::size_t{layer} * shape_.chunks() + chunk]; length > 0; ++s) {
    const Segment segment = segments[s];
    if (offset >= segment.size()) {
      offset -= segment.size();
      continue;
    }
    const std::uint64_t take = std::min<std::uint64_t>(length, segment.size() - offset);
    out.push_back(segment.subspan(offset, take));
    offset = 0;
    length -= take;
  }
}

}  // namespace objectcache::stream
