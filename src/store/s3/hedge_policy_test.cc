#include "store/s3/hedge_policy.h"

#include <gtest/gtest.h>

namespace objectcache::store_s3 {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMiB = 1 << 20;

HedgeMoment calm() {
  return {.bytes_per_second = 1e7,
          .link_bytes_per_second = 1e8,
          .requests_running = 1,
          .connections = 16};
}

TEST(HedgePolicy, WaitsForTheQuantileOnceEnoughIsKnown) {
  HedgePolicy policy{HedgeOptions{}};
  struct Row {
    std::uint64_t bytes;
    std::size_t samples;
    std::optional<Duration> quantile;
    std::optional<Duration> expected;
  };
  const Row rows[] = {
      {kMiB, 100, milliseconds(40), milliseconds(40)},
      {kMiB, 99, milliseconds(40), std::nullopt},
      {kMiB, 100, std::nullopt, std::nullopt},
      {kMiB, 1000, milliseconds(1), milliseconds(10)},
      {8 * kMiB, 1000, milliseconds(40), milliseconds(40)},
      {8 * kMiB + 1, 1000, milliseconds(40), std::nullopt},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(policy.wait(row.bytes, row.samples, row.quantile), row.expected)
        << row.bytes << " " << row.samples;
  }
}

TEST(HedgePolicy, OffMeansOff) {
  HedgePolicy policy{HedgeOptions{.enabled = false}};
  policy.on_bytes(1ULL << 40);
  EXPECT_FALSE(policy.wait(kMiB, 1000, milliseconds(40)));
  EXPECT_FALSE(policy.may_start(kMiB, calm()));
}

TEST(HedgePolicy, NoBudgetBeforeBytesWereRead) {
  HedgePolicy policy{HedgeOptions{}};
  EXPECT_FALSE(policy.may_start(kMiB, calm()));
  policy.on_bytes(49 * kMiB);
  EXPECT_FALSE(policy.may_start(kMiB, calm()));
  policy.on_bytes(2 * kMiB);
  EXPECT_TRUE(policy.may_start(kMiB, calm()));
}

TEST(HedgePolicy, StaysWithinTwoPercent) {
  HedgePolicy policy{HedgeOptions{}};
  std::uint64_t read = 0;
  std::uint64_t hedged = 0;
  for (int i = 0; i < 20000; ++i) {
    policy.on_bytes(kMiB);
    read += kMiB;
    if (policy.may_start(kMiB, calm())) {
      hedged += kMiB;
      policy.finish(0);
    }
    ASSERT_LE(static_cast<double>(hedged), 0.02 * static_cast<double>(read) + 1);
  }
  EXPECT_GT(static_cast<double>(hedged), 0.019 * static_cast<double>(read));
}

TEST(HedgePolicy, CreditDoesNotPileUp) {
  HedgePolicy policy{HedgeOptions{}};
  policy.on_bytes(1ULL << 50);
  int started = 0;
  while (policy.may_start(8 * kMiB, calm())) {
    ++started;
    policy.finish(0);
  }
  EXPECT_EQ(started, 8);
}

TEST(HedgePolicy, UnusedBytesGoBack) {
  HedgePolicy policy{HedgeOptions{}};
  policy.on_bytes(60 * kMiB);
  ASSERT_TRUE(policy.may_start(kMiB, calm()));
  const std::uint64_t left = policy.credit_bytes();
  policy.finish(kMiB / 2);
  EXPECT_EQ(policy.credit_bytes(), left + kMiB / 2);
}

TEST(HedgePolicy, FewAtATime) {
  HedgePolicy policy{HedgeOptions{}};
  policy.on_bytes(1ULL << 40);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(policy.may_start(kMiB, calm()));
  EXPECT_FALSE(policy.may_start(kMiB, calm()));
  policy.finish(kMiB);
  EXPECT_TRUE(policy.may_start(kMiB, calm()));
}

TEST(HedgePolicy, NeverWhileTheLinkOrTheConnectionsAreFull) {
  struct Row {
    HedgeMoment moment;
    bool allowed;
  };
  const Row rows[] = {
      {calm(), true},
      {{.bytes_per_second = 6.9e7,
        .link_bytes_per_second = 1e8,
        .requests_running = 1,
        .connections = 4},
       true},
      {{.bytes_per_second = 7.1e7,
        .link_bytes_per_second = 1e8,
        .requests_running = 1,
        .connections = 4},
       false},
      {{.bytes_per_second = 2e8,
        .link_bytes_per_second = 1e8,
        .requests_running = 1,
        .connections = 4},
       false},
      {{.bytes_per_second = 0, .link_bytes_per_second = 0, .requests_running = 1, .connections = 4},
       false},
      {{.bytes_per_second = 0,
        .link_bytes_per_second = 1e8,
        .requests_running = 4,
        .connections = 4},
       false},
      {{.bytes_per_second = 0,
        .link_bytes_per_second = 1e8,
        .requests_running = 3,
        .connections = 4},
       true},
  };
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    HedgePolicy policy{HedgeOptions{}};
    policy.on_bytes(1ULL << 40);
    EXPECT_EQ(policy.may_start(kMiB, rows[i].moment), rows[i].allowed) << i;
  }
}

}  // namespace
}  // namespace objectcache::store_s3
