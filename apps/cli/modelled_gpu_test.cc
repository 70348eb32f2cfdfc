#include "cli/modelled_gpu.h"

#include <gtest/gtest.h>

#include <thread>

namespace objectcache::cli {
namespace {

using std::chrono::milliseconds;

TEST(ModelledGpu, ComputesLayersOneAfterTheOther) {
  const TimePoint start = std::chrono::steady_clock::now();
  const auto run = run_modelled_gpu(start, {milliseconds(2), milliseconds(3)},
                                    [](std::uint32_t) { return Result<void>{}; });
  ASSERT_TRUE(run.has_value());
  EXPECT_GE(run->ttft, milliseconds(5));
  EXPECT_EQ(run->layers[1].compute_begin, run->layers[0].compute_end);
  EXPECT_EQ(run->ttft - run->stall, milliseconds(5));
}

TEST(ModelledGpu, CountsTheTimeItHadToWait) {
  const TimePoint start = std::chrono::steady_clock::now();
  const auto run = run_modelled_gpu(start, {milliseconds(1), milliseconds(1)}, [](std::uint32_t l) {
    if (l == 1) std::this_thread::sleep_for(milliseconds(5));
    return Result<void>{};
  });
  ASSERT_TRUE(run.has_value());
  EXPECT_GE(run->stall, milliseconds(4));
  EXPECT_EQ(run->ttft - run->stall, milliseconds(2));
}

TEST(ModelledGpu, DoesNotSleepForWhatIsCertain) {
  const TimePoint start = std::chrono::steady_clock::now();
  const auto run = run_modelled_gpu(
      start, {std::chrono::hours(1), std::chrono::hours(1)},
      [](std::uint32_t) { return Result<void>{}; }, [] { return true; });
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->ttft - run->stall, std::chrono::hours(2));
  EXPECT_EQ(run->layers[1].compute_begin, run->layers[0].compute_end);
}

TEST(ModelledGpu, PassesAFailureOn) {
  const auto run = run_modelled_gpu(
      std::chrono::steady_clock::now(), {milliseconds(1)},
      [](std::uint32_t) -> Result<void> { return fail(ErrorCode::kCorrupt, "bad"); });
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace objectcache::cli
