#include "stream/transfer.h"

#include <algorithm>
#include <cassert>

#include "digest/crc32c.h"

namespace objectcache::stream {
namespace {

struct LayerPart {
  std::uint32_t layer = 0;
  std::uint32_t first_unit = 0;
  std::uint32_t end_unit = 0;
  std::uint64_t offset = 0;  ///< In the slice.
  std::uint64_t bytes = 0;
  std::uint64_t wanted = 0;  ///< Leading bytes that belong to the destination.
};

/// The part of one layer that the piece covers.
LayerPart part_of(const ReadShape& shape, const Piece& piece, std::uint32_t layer) {
  const std::uint32_t units = shape.units();
  const std::uint32_t first = std::max(piece.begin, layer * units) - layer * units;
  const std::uint32_t end = std::min(piece.end, (layer + 1) * units) - layer * units;
  const std::uint64_t unit_bytes = shape.layout().unit_bytes(layer);
  const std::uint64_t offset = first * unit_bytes;
  const std::uint64_t end_offset = end * unit_bytes;
  const std::uint64_t wanted_end = std::min(end_offset, shape.bytes_wanted(piece.chunk, layer));
  return {.layer = layer,
          .first_unit = first,
          .end_unit = end,
          .offset = offset,
          .bytes = end_offset - offset,
          .wanted = wanted_end > offset ? wanted_end - offset : 0};
}

std::uint32_t end_layer(const ReadShape& shape, const Piece& piece) {
  return piece.begin == piece.end ? 0 : shape.layer_of(piece.end - 1) + 1;
}

}  // namespace

std::uint64_t Transfer::scratch_bytes(const ReadShape& shape, const Piece& piece) {
  std::uint64_t sum = piece.with_header ? shape.layout().header_bytes() : 0;
  // Only the last chunk has surplus; the others need no look at each layer.
  if (shape.bytes_wanted(piece.chunk, 0) == shape.layout().slice_bytes(0)) return sum;
  for (std::uint32_t l = shape.layer_of(piece.begin); l < end_layer(shape, piece); ++l) {
    const LayerPart part = part_of(shape, piece, l);
    sum += part.bytes - part.wanted;
  }
  return sum;
}

std::uint64_t Transfer::range_bytes(const ReadShape& shape, const Piece& piece) {
  std::uint64_t sum = piece.with_header ? shape.layout().header_bytes() : 0;
  for (std::uint32_t l = shape.layer_of(piece.begin); l < end_layer(shape, piece); ++l) {
    sum += part_of(shape, piece, l).bytes;
  }
  return sum;
}

std::uint64_t Transfer::range_offset(const ReadShape& shape, const Piece& piece) {
  if (piece.with_header) return 0;
  const std::uint32_t layer = shape.layer_of(piece.begin);
  return shape.layout().slice_offset(layer) +
         shape.unit_of(piece.begin) * shape.layout().unit_bytes(layer);
}

void Transfer::begin(const ReadShape& shape, const DestinationMap& destination, const Piece& piece,
                     MemoryBudget::Ticket memory) {
  shape_ = &shape;
  piece_ = piece;
  memory_ = std::move(memory);
  scratch_.resize(scratch_bytes(shape, piece));
  assert(memory_.bytes() >= scratch_.size());
  segments_.clear();
  std::uint64_t scratch_used = 0;
  const auto use_scratch = [&](std::uint64_t bytes) {
    if (bytes == 0) return;
    segments_.push_back(Segment(scratch_).subspan(scratch_used, bytes));
    scratch_used += bytes;
  };
  length_ = 0;
  if (piece.with_header) {
    use_scratch(shape.layout().header_bytes());
    length_ = shape.layout().header_bytes();
  }
  for (std::uint32_t l = shape.layer_of(piece.begin); l < end_layer(shape, piece); ++l) {
    const LayerPart part = part_of(shape, piece, l);
    destination.append(piece.chunk, l, part.offset, part.wanted, segments_);
    use_scratch(part.bytes - part.wanted);
    length_ += part.bytes;
  }

  operation.reset();
  wanted = granted = 0;
  contacted = halted = cancelled = false;
  seen_ = 0;
  segment_ = 0;
  segment_done_ = 0;
  in_header_ = piece.with_header;
  slice_ = piece.begin;
  crc_ = 0;
  left_ = in_header_ ? shape.layout().header_bytes()
                     : shape.layout().unit_bytes(shape.layer_of(slice_));
}

void Transfer::end() {
  operation.reset();
  scratch_ = {};
  memory_ = {};
}

void Transfer::skip(std::uint64_t bytes) {
  while (bytes > 0) {
    const std::uint64_t left = segments_[segment_].size() - segment_done_;
    const std::uint64_t take = std::min(left, bytes);
    bytes -= take;
    segment_done_ += take;
    if (take == left) {
      ++segment_;
      segment_done_ = 0;
    }
  }
}

void Transfer::checksum(std::uint64_t bytes) {
  while (bytes > 0) {
    const Segment segment = segments_[segment_].subspan(segment_done_);
    const std::uint64_t take = std::min<std::uint64_t>(segment.size(), bytes);
    crc_ = digest::crc32c_extend(crc_, segment.first(take));
    bytes -= take;
    segment_done_ += take;
    if (take == segment.size()) {
      ++segment_;
      segment_done_ = 0;
    }
  }
}

void Transfer::next_slice() {
  ++slice_;
  crc_ = 0;
  left_ = slice_ < piece_.end ? shape_->layout().unit_bytes(shape_->layer_of(slice_)) : 0;
}

void Transfer::advance(std::uint64_t bytes, Sink& sink) {
  assert(bytes <= length_);
  while (seen_ < bytes && !halted) {
    const std::uint64_t take = std::min(left_, bytes - seen_);
    const bool wanted_unit =
        !in_header_ && shape_->unit_of(slice_) < shape_->units_wanted(piece_.chunk);
    wanted_unit ? checksum(take) : skip(take);
    seen_ += take;
    left_ -= take;
    if (left_ > 0) continue;
    if (in_header_) {
      in_header_ = false;
      if (slice_ < piece_.end) left_ = shape_->layout().unit_bytes(shape_->layer_of(slice_));
      sink.on_header(*this, ConstSegment(scratch_).first(shape_->layout().header_bytes()));
    } else {
      const std::uint32_t slice = slice_;
      const std::uint32_t crc = crc_;
      next_slice();
      if (wanted_unit) sink.on_slice(*this, slice, crc);
    }
  }
  seen_ = std::max(seen_, bytes);
}

std::uint64_t Transfer::next_layer_end(std::uint64_t bytes) const {
  std::uint64_t end = piece_.with_header ? shape_->layout().header_bytes() : 0;
  if (piece_.begin == piece_.end) return end;
  for (std::uint32_t l = shape_->layer_of(piece_.begin); l < end_layer(*shape_, piece_); ++l) {
    end += part_of(*shape_, piece_, l).bytes;
    if (end > bytes) break;
  }
  return end;
}

std::uint32_t Transfer::layer_at(std::uint64_t bytes) const {
  std::uint64_t end = piece_.with_header ? shape_->layout().header_bytes() : 0;
  const std::uint32_t first = shape_->layer_of(piece_.begin);
  if (piece_.begin == piece_.end || bytes < end) return first;
  const std::uint32_t last = end_layer(*shape_, piece_) - 1;
  for (std::uint32_t l = first; l < last; ++l) {
    end += part_of(*shape_, piece_, l).bytes;
    if (end > bytes) return l;
  }
  return last;
}

}  // namespace objectcache::stream
