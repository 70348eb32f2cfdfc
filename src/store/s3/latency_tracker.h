#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "objectcache/types.h"

namespace objectcache::store_s3 {

/// What was seen of a store lately: how long the first byte takes (the last 1,024 answers), and
/// how many bytes a second came in (the last second, in slots of 50 ms). Feeds the hedge policy,
/// the read planner and stats().
///
/// A pure state machine: the times are arguments; a `now` before an earlier one counts as that.
/// Threads: one.   Memory: 20 KiB.
class LatencyTracker {
 public:
  static constexpr std::size_t kSamplesMax = 1024;
  static constexpr Duration kSlot = std::chrono::milliseconds(50);

  void on_first_byte(Duration waited);
  void on_bytes(TimePoint now, std::uint64_t bytes);

  [[nodiscard]] std::size_t samples() const { return count_; }
  /// The smallest first-byte time that the part `q` (0 to 1) of the samples does not exceed; empty
  /// without samples. Sorts again after at most 32 new samples: cheap enough to ask per request.
  [[nodiscard]] std::optional<Duration> first_byte_quantile(double q);

  /// Mean over the complete slots of the last `window` (one slot to one second).
  [[nodiscard]] double bytes_per_second(TimePoint now, Duration window = std::chrono::seconds(1));
  /// The best slot seen, fading by half in a minute: what the link is known to carry. Even a light
  /// load shows it, as its transfers come in bursts.
  [[nodiscard]] double bytes_per_second_peak(TimePoint now);

 private:
  static constexpr std::int64_t kSlots = 21;  ///< One second and the running slot.

  void advance(TimePoint now);

  std::array<Duration, kSamplesMax> ring_{};
  std::size_t count_ = 0;
  std::uint64_t total_ = 0;
  std::vector<Duration> sorted_;
  std::uint64_t sorted_at_ = 0;

  std::array<std::uint64_t, kSlots> slots_{};  ///< Bytes; index: number of the slot % kSlots.
  std::int64_t slot_ = -1;                     ///< The running one; -1: none yet.
  std::int64_t slot_first_ = 0;
  double peak_ = 0;
};

}  // namespace objectcache::store_s3
