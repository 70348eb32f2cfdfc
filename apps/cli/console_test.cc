#include "cli/console.h"

#include <gtest/gtest.h>

namespace objectcache::cli {
namespace {

using std::chrono::nanoseconds;

TEST(Human, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes(96 << 20), "96.0 MiB");
}

TEST(Human, RatesAndDurations) {
  EXPECT_EQ(human_rate(1.5e9), "1.50 GB/s");
  EXPECT_EQ(human_rate(12.4e6), "12 MB/s");
  EXPECT_EQ(human_duration(nanoseconds(1'500'000'000)), "1.50 s");
  EXPECT_EQ(human_duration(nanoseconds(3'400'000)), "3.40 ms");
  EXPECT_EQ(human_duration(nanoseconds(12'000)), "12 us");
}

TEST(ExitCodes, TellCausesApart) {
  EXPECT_EQ(exit_code_of(ErrorCode::kInvalidArgument), ExitCode::kUsage);
  EXPECT_EQ(exit_code_of(ErrorCode::kCorrupt), ExitCode::kBadObjects);
  EXPECT_EQ(exit_code_of(ErrorCode::kDeadlineExceeded), ExitCode::kUnavailable);
  EXPECT_EQ(exit_code_of(ErrorCode::kPermissionDenied), ExitCode::kDenied);
  EXPECT_EQ(exit_code_of(ErrorCode::kInternal), ExitCode::kFailed);
}

}  // namespace
}  // namespace objectcache::cli
