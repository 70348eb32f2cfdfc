#pragma once

#include <cstdint>
#include <optional>

#include "objectcache/types.h"

namespace objectcache::store_s3 {

struct RateLimiterOptions {
  double requests_per_second_max = 0;  ///< 0: no limit of ours.
  double requests_per_second_min = 1;  ///< Throttling never slows below this.
  /// May be sent at once after idleness, as time at the current rate.
  Duration burst = std::chrono::milliseconds(50);
  /// Answers within this time after a slowdown belong to the same cause and are not counted.
  Duration slowdown_settle = std::chrono::milliseconds(200);
};

/// Spaces requests: a token bucket, told the time. When the store throttles a noticeable part of
/// the requests, the rate falls below what was really sent and then grows step by step (AIMD),
/// until the configured rate, or no limit, is back. A rare throttled answer, which large stores
/// give while they split a partition, changes nothing: its retry is enough.
///
/// It has no queue: reserve() says when *this* request may go, and the caller sets its timer.
/// How far ahead it may reserve is bounded by the caller's deadline.
///
/// A pure state machine.   Threads: one.
class RateLimiter {
 public:
  explicit RateLimiter(const RateLimiterOptions& options) : options_(options) {}

  /// When the request may be sent (now or later); empty, and nothing is taken, if that is not
  /// before `latest`.
  [[nodiscard]] std::optional<TimePoint> reserve(TimePoint now, TimePoint latest);
  /// The store asked for fewer requests.
  void on_throttled(TimePoint now);
  /// A request was answered without throttling.
  void on_answered(TimePoint now);

  /// 0: unlimited.
  [[nodiscard]] double requests_per_second() const { return rate_ > 0 ? rate_ : configured(); }
  [[nodiscard]] bool slowed_down() const { return rate_ > 0; }

 private:
  [[nodiscard]] double configured() const { return options_.requests_per_second_max; }
  void count_sent(TimePoint now);
  void count_answer(bool throttled);

  RateLimiterOptions options_;
  double rate_ = 0;         ///< > 0: slowed down to this.
  double rate_before_ = 0;  ///< What was sent when the store first throttled.
  TimePoint next_free_{};   ///< When the bucket, emptied at this rate, is free again.
  TimePoint last_slowdown_{};
  TimePoint last_growth_{};
  TimePoint window_start_{};  ///< Of the count of sent requests; two windows of 250 ms.
  double sent_now_ = 0;
  double sent_before_ = 0;
  double answers_ = 0;    ///< Of about the last 200, weighted by age...
  double throttled_ = 0;  ///< ...how many were throttled.
};

}  // namespace objectcache::store_s3
