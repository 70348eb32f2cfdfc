#include "cli/bench/layers_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace objectcache::cli {
namespace {

TEST(LayersRows, FewerChunksKeepsSlicesAndLeavesOutWhatDoesNotDivide) {
  std::vector<std::uint32_t> chunks;
  std::vector<std::uint32_t> connections;
  for (const LayersRow& row : layers_rows()) {
    const auto scaled = scale_row(row, RowScaling::kChunks, 32);
    chunks.push_back(scaled ? scaled->chunks : 0);
    connections.push_back(scaled ? scaled->connections : 0);
    if (scaled) {
      EXPECT_EQ(scaled->slice_bytes(), 256U << 10);
    }
  }
  EXPECT_EQ(chunks, (std::vector<std::uint32_t>{0, 0, 4, 7, 8, 14, 16, 28}));
  EXPECT_EQ(connections, (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 3, 4, 7}));
}

TEST(LayersRows, OneGigabitServesHalfOfTheRowsEach) {
  const auto rows = layers_rows();
  EXPECT_FALSE(scale_row(rows[2], RowScaling::kChunks, 112));
  EXPECT_EQ(scale_row(rows[2], RowScaling::kChunks, 128)->chunks, 1U);
  EXPECT_EQ(scale_row(rows[7], RowScaling::kChunks, 112)->chunks, 8U);
  EXPECT_FALSE(scale_row(rows[5], RowScaling::kChunks, 128));
}

TEST(LayersRows, SmallerSlicesKeepsTheChunks) {
  const auto scaled = scale_row(layers_rows()[7], RowScaling::kSlices, 32);
  EXPECT_EQ(scaled->chunks, 896U);
  EXPECT_EQ(scaled->slice_bytes(), 8U << 10);
  EXPECT_EQ(scaled->connections, 16U);
  EXPECT_FALSE(scale_row(layers_rows()[7], RowScaling::kSlices, 3));
  EXPECT_FALSE(scale_row(layers_rows()[7], RowScaling::kSlices, 0));
}

TEST(LayersRows, EveryTransferTimeStaysWhatItWasAtFullSize) {
  for (const LayersRow& row : layers_rows()) {
    const double full_s = row.cached_tokens * 4096.0 / 12.5e9;
    for (const auto scaling : {RowScaling::kChunks, RowScaling::kSlices}) {
      const auto scaled = scale_row(row, scaling, 32);
      if (!scaled) continue;
      EXPECT_NEAR(static_cast<double>(scaled->layer_bytes()) / scaled->link_bytes_per_s, full_s,
                  1e-9);
    }
  }
}

TEST(LayersRows, IdealHidesAllTransfersButTheFirstUnlessTheyAreLonger) {
  EXPECT_DOUBLE_EQ(ideal_ttft_ms(10, 4), 324);
  EXPECT_DOUBLE_EQ(ideal_ttft_ms(4, 10), 32 * 4 + 10 + 31 * 6);
}

}  // namespace
}  // namespace objectcache::cli
