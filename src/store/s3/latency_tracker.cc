#include "store/s3/latency_tracker.h"

#include <algorithm>
#include <cmath>

namespace objectcache::store_s3 {
namespace {

constexpr double kPeakFadePerSlot = 0.99942;  // 0.5 after 1,200 slots.
constexpr double kSlotSeconds = std::chrono::duration<double>(LatencyTracker::kSlot).count();

}  // namespace

void LatencyTracker::on_first_byte(Duration waited) {
  ring_[total_ % kSamplesMax] = std::max(waited, Duration::zero());
  ++total_;
  count_ = std::min(count_ + 1, kSamplesMax);
}

std::optional<Duration> LatencyTracker::first_byte_quantile(double q) {
  if (count_ == 0) return std::nullopt;
  if (sorted_.empty() || total_ - sorted_at_ >= std::min<std::uint64_t>(32, 1 + count_ / 8)) {
    sorted_.assign(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(count_));
    std::ranges::sort(sorted_);
    sorted_at_ = total_;
  }
  const auto n = static_cast<double>(sorted_.size());
  const double rank = std::ceil(std::clamp(q, 0.0, 1.0) * n) - 1;
  return sorted_[static_cast<std::size_t>(std::clamp(rank, 0.0, n - 1))];
}

void LatencyTracker::advance(TimePoint now) {
  const std::int64_t slot = now.time_since_epoch() / kSlot;
  if (slot_ < 0) {
    slot_ = slot;
    slot_first_ = slot;
  }
  if (slot <= slot_) return;
  const std::int64_t steps = slot - slot_;
  const double complete = static_cast<double>(slots_[slot_ % kSlots]) / kSlotSeconds;
  peak_ = std::max(peak_, complete) * std::pow(kPeakFadePerSlot, static_cast<double>(steps));
  for (std::int64_t i = 1; i <= std::min(steps, kSlots); ++i) slots_[(slot_ + i) % kSlots] = 0;
  slot_ = slot;
}

void LatencyTracker::on_bytes(TimePoint now, std::uint64_t bytes) {
  advance(now);
  slots_[slot_ % kSlots] += bytes;
}

double LatencyTracker::bytes_per_second(TimePoint now, Duration window) {
  advance(now);
  // Fewer slots while the tracker is younger than the window.
  const std::int64_t wanted = std::clamp<std::int64_t>(window / kSlot, 1, kSlots - 1);
  const std::int64_t complete = std::min(slot_ - slot_first_, wanted);
  if (complete <= 0) return 0;
  std::uint64_t sum = 0;
  for (std::int64_t i = 1; i <= complete; ++i) sum += slots_[(slot_ - i) % kSlots];
  return static_cast<double>(sum) / (kSlotSeconds * static_cast<double>(complete));
}

double LatencyTracker::bytes_per_second_peak(TimePoint now) {
  advance(now);
  return peak_;
}

}  // namespace objectcache::store_s3
