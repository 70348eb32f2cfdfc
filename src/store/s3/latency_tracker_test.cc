#include "store/s3/latency_tracker.h"

#include <gtest/gtest.h>

namespace objectcache::store_s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours(1)};

TEST(LatencyTracker, EmptyKnowsNothing) {
  LatencyTracker tracker;
  EXPECT_FALSE(tracker.first_byte_quantile(0.5));
  EXPECT_EQ(tracker.bytes_per_second(kStart), 0);
  EXPECT_EQ(tracker.bytes_per_second_peak(kStart), 0);
}

TEST(LatencyTracker, QuantilesOfAKnownSample) {
  LatencyTracker tracker;
  for (int i = 100; i >= 1; --i) tracker.on_first_byte(milliseconds(i));
  struct Row {
    double q;
    int expected_ms;
  };
  for (const Row row :
       {Row{0, 1}, {0.01, 1}, {0.5, 50}, {0.9, 90}, {0.99, 99}, {1, 100}, {7, 100}, {-1, 1}}) {
    EXPECT_EQ(tracker.first_byte_quantile(row.q), milliseconds(row.expected_ms)) << row.q;
  }
}

TEST(LatencyTracker, OnlyTheLastSamplesCount) {
  LatencyTracker tracker;
  for (int i = 0; i < 5000; ++i) tracker.on_first_byte(seconds(1));
  for (std::size_t i = 0; i < LatencyTracker::kSamplesMax; ++i)
    tracker.on_first_byte(milliseconds(3));
  EXPECT_EQ(tracker.first_byte_quantile(1), milliseconds(3));
  EXPECT_EQ(tracker.samples(), LatencyTracker::kSamplesMax);
}

TEST(LatencyTracker, NewSamplesShowSoon) {
  LatencyTracker tracker;
  for (int i = 0; i < 1000; ++i) tracker.on_first_byte(milliseconds(1));
  ASSERT_EQ(tracker.first_byte_quantile(0.99), milliseconds(1));
  for (int i = 0; i < 32; ++i) tracker.on_first_byte(milliseconds(100));
  EXPECT_EQ(tracker.first_byte_quantile(0.99), milliseconds(100));
}

TEST(LatencyTracker, NegativeWaitsCountAsZero) {
  LatencyTracker tracker;
  tracker.on_first_byte(milliseconds(-5));
  EXPECT_EQ(tracker.first_byte_quantile(0.5), Duration::zero());
}

TEST(LatencyTracker, RateOfASteadyFlow) {
  LatencyTracker tracker;
  TimePoint now = kStart;
  for (int i = 0; i < 3000; ++i) tracker.on_bytes(now += milliseconds(1), 100'000);
  EXPECT_NEAR(tracker.bytes_per_second(now), 1e8, 1e6);
  EXPECT_NEAR(tracker.bytes_per_second_peak(now), 1e8, 2e6);
}

TEST(LatencyTracker, YoungTrackerIsNotDiluted) {
  LatencyTracker tracker;
  TimePoint now = kStart;
  for (int i = 0; i < 101; ++i) tracker.on_bytes(now += milliseconds(1), 100'000);
  EXPECT_NEAR(tracker.bytes_per_second(now), 1e8, 5e6);
}

TEST(LatencyTracker, LightLoadShowsThePeakOfItsBursts) {
  LatencyTracker tracker;
  TimePoint now = kStart;
  for (int i = 0; i < 50; ++i) {
    tracker.on_bytes(now, 1'000'000);
    now += milliseconds(200);
  }
  EXPECT_LT(tracker.bytes_per_second(now), 0.4 * tracker.bytes_per_second_peak(now));
}

TEST(LatencyTracker, RateFallsToZeroWhenNothingComes) {
  LatencyTracker tracker;
  TimePoint now = kStart;
  for (int i = 0; i < 2000; ++i) tracker.on_bytes(now += milliseconds(1), 100'000);
  EXPECT_NEAR(tracker.bytes_per_second(now + milliseconds(500)), 5e7, 5e6);
  EXPECT_EQ(tracker.bytes_per_second(now + seconds(5)), 0);
}

TEST(LatencyTracker, PeakFadesSlowly) {
  LatencyTracker tracker;
  TimePoint now = kStart;
  for (int i = 0; i < 2000; ++i) tracker.on_bytes(now += milliseconds(1), 100'000);
  EXPECT_NEAR(tracker.bytes_per_second_peak(now + seconds(60)), 5e7, 5e6);
}

TEST(LatencyTracker, TimesThatStepBackAndLeapAreTaken) {
  LatencyTracker tracker;
  tracker.on_bytes(kStart, 10);
  tracker.on_bytes(kStart - seconds(3), 10);
  tracker.on_bytes(kStart + std::chrono::hours(24 * 365), 10);
  EXPECT_EQ(tracker.bytes_per_second(kStart), 0);
}

}  // namespace
}  // namespace objectcache::store_s3
