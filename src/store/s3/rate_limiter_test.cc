#include "store/s3/rate_limiter.h"

#include <gtest/gtest.h>

namespace objectcache::store_s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours(1)};
constexpr TimePoint kNever = TimePoint::max();

/// Sends as fast as it allows for `span`; returns how many.
int send_for(RateLimiter& limiter, TimePoint& now, Duration span, Duration step = milliseconds(1),
             bool answer = true) {
  const TimePoint end = now + span;
  int sent = 0;
  while (now < end) {
    const auto at = limiter.reserve(now, kNever);
    EXPECT_TRUE(at.has_value());
    now = std::max(*at, now + step);
    if (now >= end) break;
    ++sent;
    if (answer) limiter.on_answered(now);
  }
  now = end;
  return sent;
}

TEST(RateLimiter, WithoutALimitEverythingGoesAtOnce) {
  RateLimiter limiter{RateLimiterOptions{}};
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(limiter.reserve(kStart, kNever), kStart);
}

TEST(RateLimiter, HoldsTheConfiguredRate) {
  RateLimiter limiter{RateLimiterOptions{.requests_per_second_max = 100}};
  TimePoint now = kStart;
  EXPECT_NEAR(send_for(limiter, now, seconds(10)), 1000, 10);
}

TEST(RateLimiter, BurstAfterIdlenessIsBounded) {
  RateLimiter limiter{RateLimiterOptions{.requests_per_second_max = 100}};
  static_cast<void>(limiter.reserve(kStart, kNever));
  const TimePoint later = kStart + seconds(100);
  int at_once = 0;
  while (limiter.reserve(later, kNever) == later) ++at_once;
  EXPECT_EQ(at_once, 6);  // 50 ms at 100/s, and the one that is due.
}

TEST(RateLimiter, RefusesWhatWouldGoTooLateAndTakesNothing) {
  RateLimiter limiter{RateLimiterOptions{.requests_per_second_max = 1}};
  ASSERT_TRUE(limiter.reserve(kStart, kNever));
  EXPECT_FALSE(limiter.reserve(kStart, kStart + milliseconds(500)));
  EXPECT_FALSE(limiter.reserve(kStart, kStart));
  const auto next = limiter.reserve(kStart, kNever);
  ASSERT_TRUE(next);
  EXPECT_LE(*next, kStart + seconds(1));
}

/// So many throttled answers at once that they cannot be an accident.
void throttle(RateLimiter& limiter, TimePoint now) {
  for (int i = 0; i < 15; ++i) limiter.on_throttled(now);
}

TEST(RateLimiter, ARareThrottledAnswerChangesNothing) {
  RateLimiter limiter{RateLimiterOptions{}};
  TimePoint now = kStart;
  for (int i = 0; i < 100'000; ++i) {
    now += milliseconds(1);
    static_cast<void>(limiter.reserve(now, kNever));
    if (i % 50 == 0) {
      limiter.on_throttled(now);
    } else {
      limiter.on_answered(now);
    }
    ASSERT_FALSE(limiter.slowed_down()) << i;
  }
}

TEST(RateLimiter, ThrottlingLowersTheRateThatWasSent) {
  RateLimiter limiter{RateLimiterOptions{}};
  TimePoint now = kStart;
  send_for(limiter, now, seconds(1), milliseconds(2));  // 500/s
  throttle(limiter, now);
  EXPECT_TRUE(limiter.slowed_down());
  EXPECT_NEAR(limiter.requests_per_second(), 350, 80);
}

TEST(RateLimiter, AStormOfThrottledAnswersCountsOnce) {
  RateLimiter limiter{RateLimiterOptions{.requests_per_second_max = 100}};
  TimePoint now = kStart;
  send_for(limiter, now, seconds(2));
  throttle(limiter, now);
  const double once = limiter.requests_per_second();
  for (int i = 0; i < 100; ++i) limiter.on_throttled(now + milliseconds(1));
  EXPECT_EQ(limiter.requests_per_second(), once);
  limiter.on_throttled(now + milliseconds(250));
  EXPECT_DOUBLE_EQ(limiter.requests_per_second(), once * 0.7);
}

TEST(RateLimiter, NeverFallsBelowTheMinimum) {
  RateLimiter limiter{RateLimiterOptions{.requests_per_second_max = 100}};
  TimePoint now = kStart;
  for (int i = 0; i < 100; ++i) limiter.on_throttled(now += seconds(1));
  EXPECT_EQ(limiter.requests_per_second(), 1);
}

TEST(RateLimiter, GrowsBackToTheConfiguredRate) {
  RateLimiter limiter{RateLimiterOptions{.requests_per_second_max = 100}};
  TimePoint now = kStart;
  send_for(limiter, now, seconds(1));
  throttle(limiter, now);
  ASSERT_TRUE(limiter.slowed_down());
  send_for(limiter, now, seconds(20));
  EXPECT_FALSE(limiter.slowed_down());
  EXPECT_EQ(limiter.requests_per_second(), 100);
}

TEST(RateLimiter, FindsTheRateAStoreAllows) {
  // A store that throttles whatever comes faster than 200/s, and a client that would send 2,000/s.
  RateLimiter limiter{RateLimiterOptions{}};
  TimePoint now = kStart;
  double credit = 0;
  TimePoint credited = now;
  int good = 0;
  int throttled = 0;
  const TimePoint end = now + seconds(60);
  while (now < end) {
    now = std::max(*limiter.reserve(now, kNever), now + std::chrono::microseconds(500));
    credit = std::min(credit + 200 * std::chrono::duration<double>(now - credited).count(), 20.0);
    credited = now;
    if (credit >= 1) {
      credit -= 1;
      ++good;
      limiter.on_answered(now);
    } else {
      ++throttled;
      limiter.on_throttled(now);
    }
  }
  EXPECT_GT(good, 60 * 200 * 6 / 10);
  EXPECT_LT(throttled, good / 4);
}

TEST(RateLimiter, TimesOfTwoLoopsMayStepBackALittle) {
  RateLimiter limiter{RateLimiterOptions{.requests_per_second_max = 100}};
  TimePoint now = kStart;
  for (int i = 0; i < 1000; ++i) {
    const TimePoint t = now - milliseconds(i % 3);
    const auto at = limiter.reserve(t, kNever);
    ASSERT_TRUE(at);
    ASSERT_GE(*at, t);
    now += milliseconds(10);
  }
}

}  // namespace
}  // namespace objectcache::store_s3
