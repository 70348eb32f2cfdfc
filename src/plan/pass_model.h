#pragma once

#include <cstdint>
#include <vector>

#include "plan/read_planner.h"

namespace objectcache::plan {

/// Predicts when layers arrive that are read in passes: the formulas of
/// docs/internals/planner.md. A pass reads `width` neighbouring layers of all N chunks, one
/// request a chunk, over K connections: ceil(N/K) rounds, of which the last has K' requests.
///
/// Times are seconds from the start of the read. Immutable. Requires a checked job.
class PassModel {
 public:
  PassModel(const ReadJob& job, const StoreCharacter& store);

  [[nodiscard]] std::uint32_t first_layer() const { return first_layer_; }
  [[nodiscard]] std::uint32_t layers() const {
    return static_cast<std::uint32_t>(prefix_.size()) - 1;
  }

  /// When `layer` of the pass [first, first + width) that starts at `start` is there.
  [[nodiscard]] double ready(double start, std::uint32_t first, std::uint32_t width,
                             std::uint32_t layer, bool first_pass) const;

  /// Passes that run side by side: more than 1 only where the N requests of one pass cannot fill
  /// the link because a single connection is slower than its share.
  [[nodiscard]] std::uint32_t lanes() const { return lanes_; }
  /// The waits for first bytes that a pass of this width adds to its transfer.
  [[nodiscard]] double waits_s(std::uint32_t first, std::uint32_t width, bool first_pass) const;
  /// X: the transfer of the layers [first, first + width) of all chunks.
  [[nodiscard]] double transfer_s(std::uint32_t first, std::uint32_t width) const;

 private:
  std::vector<double> prefix_;  ///< Bytes of one chunk before layer l, header included.
  std::uint32_t first_layer_;
  double chunks_;
  double connections_;
  double rounds_;
  double last_round_;  ///< K'.
  double rate_;        ///< Bytes per second of a full round.
  double last_rate_;   ///< Of the last round.
  double first_byte_s_;
  double exposed_;
  double requests_s_;  ///< What the request rate adds: N requests of a pass.
  std::uint32_t lanes_;
  double passes_in_flight_;  ///< floor(K/N), at least 1; 1 with several lanes.
};

/// Follows passes through time, lane by lane.
class PassClock {
 public:
  explicit PassClock(const PassModel& model) : model_(model), free_(model.lanes(), 0.0) {}

  /// When the next pass can start.
  [[nodiscard]] double start() const;
  /// When `layer` arrives if the next pass is [first, first + width).
  [[nodiscard]] double ready(std::uint32_t first, std::uint32_t width, std::uint32_t layer) const;
  /// Adds the pass and appends when its layers are there.
  void add(std::uint32_t first, std::uint32_t width, std::vector<double>& ready_out);

 private:
  const PassModel& model_;
  std::vector<double> free_;
  std::uint32_t passes_ = 0;
};

}  // namespace objectcache::plan
