#include "cli/bench/report.h"

#include <gtest/gtest.h>

namespace objectcache::cli {
namespace {

TEST(Report, TableAlignsColumnsAndLeavesMissingFieldsBlank) {
  EXPECT_EQ(format_table({{{"client", "ours"}, {"mb_per_s", 1234.5}},
                          {{"client", "plain"}, {"mb_per_s", 2.25}, {"note", "x"}}}),
            "client  mb_per_s  note\n"
            "ours        1234      \n"
            "plain       2.25     x\n");
}

TEST(Report, QuantilesInterpolate) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.95), 7);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.95), 9.5);
}

TEST(Report, DescribesTheMachine) {
  const auto machine = describe_machine();
  EXPECT_GE(machine["cores"].get<int>(), 1);
  EXPECT_GT(machine["memory_gib"].get<double>(), 0);
}

}  // namespace
}  // namespace objectcache::cli
