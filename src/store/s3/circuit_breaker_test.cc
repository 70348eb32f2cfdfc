#include "store/s3/circuit_breaker.h"

#include <gtest/gtest.h>

namespace objectcache::store_s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours(1)};

/// Fails it every 100 ms until it opens; returns when it did.
TimePoint open(CircuitBreaker& breaker, TimePoint from) {
  for (TimePoint t = from; t < from + seconds(60); t += milliseconds(100)) {
    breaker.on_failure(t, false);
    if (breaker.state() == BreakerState::kOpen) return t;
  }
  ADD_FAILURE() << "never opened";
  return from;
}

TEST(CircuitBreaker, StartsClosed) {
  CircuitBreaker breaker{BreakerOptions{}};
  EXPECT_TRUE(breaker.admit(kStart).allowed);
  EXPECT_FALSE(breaker.admit(kStart).probe);
}

TEST(CircuitBreaker, OneBurstOfFailuresIsNotADeadServer) {
  CircuitBreaker breaker{BreakerOptions{}};
  for (int i = 0; i < 1000; ++i) breaker.on_failure(kStart, false);
  EXPECT_EQ(breaker.state(), BreakerState::kClosed);
}

TEST(CircuitBreaker, FewSlowFailuresAreNotADeadServer) {
  CircuitBreaker breaker{BreakerOptions{}};
  for (int i = 0; i < 5; ++i) breaker.on_failure(kStart + seconds(10 * i), false);
  EXPECT_EQ(breaker.state(), BreakerState::kClosed);
}

TEST(CircuitBreaker, ASuccessBetweenStartsTheCountAnew) {
  CircuitBreaker breaker{BreakerOptions{}};
  TimePoint t = kStart;
  for (int i = 0; i < 100; ++i) {
    for (int j = 0; j < 5; ++j) breaker.on_failure(t += milliseconds(100), false);
    breaker.on_success(t, false);
  }
  EXPECT_EQ(breaker.state(), BreakerState::kClosed);
}

TEST(CircuitBreaker, OpensRefusesAndSaysUntilWhen) {
  CircuitBreaker breaker{BreakerOptions{}};
  const TimePoint opened = open(breaker, kStart);
  const auto refused = breaker.admit(opened);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_at, opened + milliseconds(500));
  EXPECT_FALSE(breaker.admit(refused.retry_at - Duration(1)).allowed);
  EXPECT_EQ(breaker.times_opened(), 1U);
}

TEST(CircuitBreaker, LetsExactlyOneProbeThrough) {
  CircuitBreaker breaker{BreakerOptions{}};
  const TimePoint at = open(breaker, kStart) + milliseconds(500);
  EXPECT_TRUE(breaker.would_admit(at));
  EXPECT_TRUE(breaker.would_admit(at));
  const auto probe = breaker.admit(at);
  EXPECT_TRUE(probe.allowed);
  EXPECT_TRUE(probe.probe);
  EXPECT_EQ(breaker.state(), BreakerState::kHalfOpen);
  EXPECT_FALSE(breaker.would_admit(at));
  EXPECT_FALSE(breaker.admit(at).allowed);
  EXPECT_FALSE(breaker.admit(at + seconds(100)).allowed);
}

TEST(CircuitBreaker, AGoodProbeClosesIt) {
  CircuitBreaker breaker{BreakerOptions{}};
  const TimePoint at = open(breaker, kStart) + milliseconds(500);
  ASSERT_TRUE(breaker.admit(at).probe);
  breaker.on_success(at, true);
  EXPECT_EQ(breaker.state(), BreakerState::kClosed);
  EXPECT_TRUE(breaker.admit(at).allowed);
  // And it needs the full evidence to open again.
  for (int i = 0; i < 100; ++i) breaker.on_failure(at, false);
  EXPECT_EQ(breaker.state(), BreakerState::kClosed);
}

TEST(CircuitBreaker, BadProbesDoubleThePauseUpToTheBound) {
  CircuitBreaker breaker{BreakerOptions{}};
  TimePoint t = open(breaker, kStart);
  Duration expected = milliseconds(500);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(breaker.retry_at() - t, expected) << i;
    t = breaker.retry_at();
    ASSERT_TRUE(breaker.admit(t).probe);
    breaker.on_failure(t, true);
    expected = std::min<Duration>(expected * 2, seconds(15));
  }
}

TEST(CircuitBreaker, AProbeThatTellsNothingGivesItsPlaceAway) {
  CircuitBreaker breaker{BreakerOptions{}};
  const TimePoint at = open(breaker, kStart) + milliseconds(500);
  ASSERT_TRUE(breaker.admit(at).probe);
  breaker.on_unknown(true);
  EXPECT_TRUE(breaker.admit(at).probe);
}

TEST(CircuitBreaker, LateEndsOfEarlierRequests) {
  CircuitBreaker breaker{BreakerOptions{}};
  const TimePoint opened = open(breaker, kStart);
  breaker.on_failure(opened, false);  // Does not prolong the pause.
  EXPECT_EQ(breaker.retry_at(), opened + milliseconds(500));
  breaker.on_unknown(false);
  EXPECT_EQ(breaker.state(), BreakerState::kOpen);
  breaker.on_success(opened, false);  // The server lives after all.
  EXPECT_EQ(breaker.state(), BreakerState::kClosed);
}

TEST(CircuitBreaker, ALateProbeAfterItClosedDoesNotOpenIt) {
  CircuitBreaker breaker{BreakerOptions{}};
  const TimePoint at = open(breaker, kStart) + milliseconds(500);
  ASSERT_TRUE(breaker.admit(at).probe);
  breaker.on_success(at, false);
  breaker.on_failure(at, true);
  EXPECT_EQ(breaker.state(), BreakerState::kClosed);
}

}  // namespace
}  // namespace objectcache::store_s3
