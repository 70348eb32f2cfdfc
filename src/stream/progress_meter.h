#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "objectcache/types.h"

namespace objectcache::stream {

/// Measures how fast a stream's bytes come and how long a read takes to its first byte. Both
/// follow changes within a few samples.
///
/// Pure. Threads: one at a time.
class ProgressMeter {
 public:
  void on_first_byte(Duration since_start) {
    first_byte_ =
        first_byte_ == Duration::zero() ? since_start : (3 * first_byte_ + since_start) / 4;
  }
  void on_bytes(std::uint64_t bytes, TimePoint now) {
    if (window_start_ == TimePoint{}) {
      // Bytes that came with the first answer say nothing about the rate after it.
      window_start_ = now;
      return;
    }
    window_bytes_ += bytes;
    const Duration span = now - window_start_;
    if (span < kWindow) return;
    const double rate =
        static_cast<double>(window_bytes_) / std::chrono::duration<double>(span).count();
    rate_ = rate_ == 0 ? rate : 0.75 * rate_ + 0.25 * rate;
    window_start_ = now;
    window_bytes_ = 0;
  }
  /// What is on its way at that rate within one first-byte time; 0 while nothing is known.
  [[nodiscard]] std::uint64_t bytes_per_first_byte_time() const {
    return static_cast<std::uint64_t>(rate_ * std::chrono::duration<double>(first_byte_).count());
  }
  [[nodiscard]] double bytes_per_second() const { return rate_; }
  [[nodiscard]] Duration first_byte() const { return first_byte_; }

 private:
  static constexpr Duration kWindow = std::chrono::milliseconds(2);

  Duration first_byte_{};
  double rate_ = 0;
  TimePoint window_start_{};
  std::uint64_t window_bytes_ = 0;
};

}  // namespace objectcache::stream
