#include "store/s3/rate_limiter.h"

#include <algorithm>

namespace objectcache::store_s3 {
namespace {

constexpr Duration kWindow = std::chrono::milliseconds(250);
constexpr Duration kGrowthEvery = std::chrono::milliseconds(500);
constexpr double kSlowdownFactor = 0.7;
constexpr double kAnswerFade = 0.995;
/// From here on throttling is more than an accident.
constexpr double kThrottledPart = 0.05;
constexpr double kThrottledMin = 1.5;
/// A step of growth, as a part of the rate at which the store first throttled: back in ten seconds.
constexpr double kGrowthStep = 0.05;

double seconds(Duration span) { return std::chrono::duration<double>(span).count(); }
Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

}  // namespace

void RateLimiter::count_sent(TimePoint now) {
  if (now - window_start_ >= 2 * kWindow) {
    sent_before_ = 0;
    sent_now_ = 0;
    window_start_ = now;
  } else if (now - window_start_ >= kWindow) {
    sent_before_ = sent_now_;
    sent_now_ = 0;
    window_start_ += kWindow;
  }
  sent_now_ += 1;
}

std::optional<TimePoint> RateLimiter::reserve(TimePoint now, TimePoint latest) {
  if (now >= latest) return std::nullopt;
  const double rate = requests_per_second();
  if (rate <= 0) {
    count_sent(now);
    return now;
  }
  const TimePoint free = std::max(next_free_, now - options_.burst);
  const TimePoint at = std::max(free, now);
  if (at >= latest) return std::nullopt;
  next_free_ = free + from_seconds(1.0 / rate);
  count_sent(now);
  return at;
}

void RateLimiter::count_answer(bool throttled) {
  answers_ = answers_ * kAnswerFade + 1;
  throttled_ = throttled_ * kAnswerFade + (throttled ? 1 : 0);
}

void RateLimiter::on_throttled(TimePoint now) {
  count_answer(true);
  if (throttled_ < kThrottledMin || throttled_ < kThrottledPart * answers_) return;
  if (rate_ > 0 && now - last_slowdown_ < options_.slowdown_settle) return;
  if (rate_ <= 0) {
    // The two windows cover between one and two spans; the longer view is the calmer one.
    const double span = std::max(seconds(now - window_start_) + seconds(kWindow), seconds(kWindow));
    rate_before_ = std::max((sent_now_ + sent_before_) / span, options_.requests_per_second_min);
    if (configured() > 0) rate_before_ = std::min(rate_before_, configured());
    rate_ = rate_before_;
  }
  rate_ = std::max(rate_ * kSlowdownFactor, options_.requests_per_second_min);
  last_slowdown_ = now;
  last_growth_ = now;
  next_free_ = std::max(next_free_, now);
}

void RateLimiter::on_answered(TimePoint now) {
  count_answer(false);
  if (rate_ <= 0 || now - last_growth_ < kGrowthEvery) return;
  last_growth_ = now;
  rate_ += std::max(rate_before_ * kGrowthStep, options_.requests_per_second_min);
  // Well above where it started to throttle, the old limit (or none) is worth another try.
  const double ceiling = configured() > 0 ? configured() : 2 * rate_before_;
  if (rate_ >= ceiling) rate_ = 0;
}

}  // namespace objectcache::store_s3
