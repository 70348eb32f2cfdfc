#include "store/s3/retry_policy.h"

#include <gtest/gtest.h>

#include <set>

namespace objectcache::store_s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kNow{std::chrono::hours(1)};

AttemptFailure failure(ErrorCode code, std::optional<Duration> retry_after = {},
                       bool progressed = false) {
  AttemptFailure out;
  out.error.code = code;
  out.retry_after = retry_after;
  out.progressed = progressed;
  return out;
}

TEST(RetryPolicy, RetriesOnlyWhatMaySucceedUnchanged) {
  for (int c = 1; c <= static_cast<int>(ErrorCode::kInternal); ++c) {
    const auto code = static_cast<ErrorCode>(c);
    RetryPolicy policy{RetryOptions{}};
    Random random(1);
    const auto decision = policy.after_failure(kNow, kNow + seconds(60), failure(code), random);
    const bool expected = code == ErrorCode::kUnavailable || code == ErrorCode::kThrottled;
    EXPECT_EQ(decision.retry, expected) << error_code_name(code);
  }
}

TEST(RetryPolicy, DelaysFillTheDoublingBoundsAndNothingBeyond) {
  RetryOptions options;
  options.attempts_max = 12;
  std::vector<Duration> largest(11);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RetryPolicy policy(options);
    Random random(seed);
    for (std::size_t i = 0; i < largest.size(); ++i) {
      const auto decision =
          policy.after_failure(kNow, kNow + seconds(60), failure(ErrorCode::kUnavailable), random);
      ASSERT_TRUE(decision.retry);
      ASSERT_GE(decision.at, kNow);
      largest[i] = std::max(largest[i], decision.at - kNow);
    }
  }
  const std::vector<milliseconds> bounds = {
      milliseconds(25),   milliseconds(50),   milliseconds(100),  milliseconds(200),
      milliseconds(400),  milliseconds(800),  milliseconds(1600), milliseconds(3200),
      milliseconds(5000), milliseconds(5000), milliseconds(5000)};
  for (std::size_t i = 0; i < largest.size(); ++i) {
    EXPECT_LE(largest[i], bounds[i]) << i;
    EXPECT_GE(largest[i], bounds[i] * 9 / 10) << i;  // Full jitter reaches up to the bound.
  }
}

TEST(RetryPolicy, SeedsGiveDifferentDelaysSoClientsSpreadOut) {
  std::set<TimePoint> times;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RetryPolicy policy{RetryOptions{}};
    Random random(seed);
    times.insert(policy
                     .after_failure(kNow, kNow + seconds(9),
                                    failure(ErrorCode::kThrottled, seconds(1)), random)
                     .at);
  }
  EXPECT_GT(times.size(), 95U);
}

TEST(RetryPolicy, StopsAfterTheLastAttemptAndSaysHowMany) {
  RetryOptions options;
  options.attempts_max = 3;
  RetryPolicy policy(options);
  Random random(1);
  EXPECT_TRUE(
      policy.after_failure(kNow, kNow + seconds(9), failure(ErrorCode::kUnavailable), random)
          .retry);
  EXPECT_TRUE(
      policy.after_failure(kNow, kNow + seconds(9), failure(ErrorCode::kUnavailable), random)
          .retry);
  const auto last =
      policy.after_failure(kNow, kNow + seconds(9), failure(ErrorCode::kUnavailable), random);
  EXPECT_FALSE(last.retry);
  EXPECT_NE(last.reason.find("3 attempts"), std::string::npos) << last.reason;
}

TEST(RetryPolicy, OneAttemptMeansNoRetry) {
  RetryOptions options;
  options.attempts_max = 1;
  RetryPolicy policy(options);
  Random random(1);
  EXPECT_FALSE(
      policy.after_failure(kNow, kNow + seconds(9), failure(ErrorCode::kUnavailable), random)
          .retry);
}

TEST(RetryPolicy, ProgressStartsTheCountAnewButNotForEver) {
  RetryOptions options;
  options.attempts_max = 2;
  options.attempts_total_max = 20;
  RetryPolicy policy(options);
  Random random(1);
  for (int i = 1; i < 20; ++i) {
    ASSERT_TRUE(policy
                    .after_failure(kNow, kNow + seconds(9),
                                   failure(ErrorCode::kUnavailable, {}, true), random)
                    .retry)
        << i;
  }
  EXPECT_FALSE(policy
                   .after_failure(kNow, kNow + seconds(9),
                                  failure(ErrorCode::kUnavailable, {}, true), random)
                   .retry);
}

TEST(RetryPolicy, HonoursRetryAfterAsALowerBound) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RetryPolicy policy{RetryOptions{}};
    Random random(seed);
    const auto decision = policy.after_failure(kNow, kNow + seconds(9),
                                               failure(ErrorCode::kThrottled, seconds(2)), random);
    ASSERT_TRUE(decision.retry);
    EXPECT_GE(decision.at, kNow + seconds(2));
    EXPECT_LE(decision.at, kNow + seconds(2) + milliseconds(25));
  }
}

TEST(RetryPolicy, RefusesWhatTheDeadlineDoesNotAllow) {
  struct Row {
    Duration left;
    std::optional<Duration> retry_after;
    bool retry;
  };
  const Row rows[] = {
      {seconds(5), seconds(2), true},
      {seconds(5), seconds(5), false},
      {seconds(5), std::chrono::hours(9000), false},
      {seconds(5), seconds(-3), true},
      {Duration(0), {}, false},
      {Duration(-1), {}, false},
      {milliseconds(26), {}, true},
  };
  for (const Row& row : rows) {
    RetryPolicy policy{RetryOptions{}};
    Random random(7);
    const auto decision = policy.after_failure(
        kNow, kNow + row.left, failure(ErrorCode::kUnavailable, row.retry_after), random);
    EXPECT_EQ(decision.retry, row.retry) << row.left.count();
    if (decision.retry) {
      EXPECT_LT(decision.at, kNow + row.left);
      EXPECT_GE(decision.at, kNow);
    } else {
      EXPECT_NE(decision.reason.find("deadline"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace objectcache::store_s3
