#include "cli/timeline.h"

#include <gtest/gtest.h>

namespace objectcache::cli {
namespace {

using std::chrono::milliseconds;

TEST(Timeline, ShowsOverlapAndWaiting) {
  const std::vector<LayerSpan> layers = {{milliseconds(10), milliseconds(10), milliseconds(20)},
                                         {milliseconds(20), milliseconds(20), milliseconds(30)},
                                         {milliseconds(40), milliseconds(40), milliseconds(50)}};
  // 50 columns of one millisecond behind the label.
  EXPECT_EQ(draw_timeline(layers, milliseconds(50), 58),
            "load    ██████████▓▓▓▓▓▓▓▓▓▓████████████████████          \n"
            "compute ··········██████████▓▓▓▓▓▓▓▓▓▓··········██████████\n");
}

TEST(Timeline, CutsWhatLiesBehindTheEdge) {
  const std::vector<LayerSpan> layers = {{milliseconds(90), milliseconds(90), milliseconds(200)}};
  EXPECT_EQ(draw_timeline(layers, milliseconds(50), 40),
            "load    ████████████████████████████████\ncompute ································\n");
}

TEST(Timeline, AxisStartsAtZeroAndCountsMilliseconds) {
  EXPECT_EQ(draw_time_axis(milliseconds(500), 58),
            "        0 ms      100       200       300       400       \n");
}

}  // namespace
}  // namespace objectcache::cli
