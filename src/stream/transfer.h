#pragma once

#include <cstdint>
#include <vector>

#include "base/memory_budget.h"
#include "store/object_store.h"
#include "stream/destination_map.h"
#include "stream/read_shape.h"

namespace objectcache::stream {

/// One range read in flight: knows which part of the range belongs where, follows the bytes as
/// they arrive, and computes the checksum of each unit slice while its bytes are still in the
/// CPU's cache.
///
/// Threads: the stream's loop. Reused from read to read; advance() does not allocate.
class Transfer {
 public:
  /// Hears what arrives, in the order of the range.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void on_header(Transfer& transfer, ConstSegment header) = 0;
    virtual void on_slice(Transfer& transfer, std::uint32_t slice, std::uint32_t crc32c) = 0;
  };

  /// The bytes of `piece` that belong neither to the destination: header and surplus.
  [[nodiscard]] static std::uint64_t scratch_bytes(const ReadShape& shape, const Piece& piece);
  /// All bytes of the range.
  [[nodiscard]] static std::uint64_t range_bytes(const ReadShape& shape, const Piece& piece);
  /// Where the range starts in its object.
  [[nodiscard]] static std::uint64_t range_offset(const ReadShape& shape, const Piece& piece);

  /// Prepares for a new range. `memory` covers scratch_bytes().
  void begin(const ReadShape& shape, const DestinationMap& destination, const Piece& piece,
             MemoryBudget::Ticket memory);
  /// Gives the scratch back.
  void end();

  /// The first `bytes` of the range are in place: reports headers and slices that became complete
  /// to `sink`, until halt().
  void advance(std::uint64_t bytes, Sink& sink);
  /// What arrives from now on is ignored.
  void halt() { halted = true; }

  /// Bytes of the range up to the end of the first layer that starts at or behind `bytes`.
  [[nodiscard]] std::uint64_t next_layer_end(std::uint64_t bytes) const;
  /// The layer that the byte at `bytes` of the range serves (the header: layer 0).
  [[nodiscard]] std::uint32_t layer_at(std::uint64_t bytes) const;

  [[nodiscard]] const Piece& piece() const { return piece_; }
  [[nodiscard]] std::uint64_t length() const { return length_; }
  [[nodiscard]] std::uint64_t seen() const { return seen_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] std::uint64_t scratch_size() const { return scratch_.size(); }

  // The book-keeping of the stream that runs this transfer.
  store::OperationHandle operation;
  TimePoint started{};
  std::uint64_t wanted = 0;       ///< The stream wants bytes up to here ...
  std::uint64_t granted = 0;      ///< ... and may read up to here.
  std::uint32_t want_layer = 0;   ///< Which the byte at `wanted` serves.
  std::uint32_t grant_layer = 0;  ///< Which the byte at `granted` serves, or an earlier one.
  /// The layer of the next bytes to be granted.
  [[nodiscard]] std::uint32_t next_layer() const {
    return granted < wanted ? grant_layer : want_layer;
  }
  bool contacted = false;  ///< The store has answered with first bytes.
  bool halted = false;
  bool cancelled = false;

 private:
  /// Goes over the next `bytes` of the segments.
  void skip(std::uint64_t bytes);
  void checksum(std::uint64_t bytes);
  void next_slice();

  const ReadShape* shape_ = nullptr;
  Piece piece_;
  std::uint64_t length_ = 0;
  std::vector<Segment> segments_;
  std::vector<std::byte> scratch_;
  MemoryBudget::Ticket memory_;

  // How far advance() has come.
  std::uint64_t seen_ = 0;
  std::size_t segment_ = 0;         // Index into segments_ ...
  std::uint64_t segment_done_ = 0;  // ... and bytes of it.
  bool in_header_ = false;
  std::uint64_t left_ = 0;  // Of the header, or of the unit slice.
  std::uint32_t slice_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace objectcache::stream
