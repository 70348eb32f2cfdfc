// The whole bench on one tiny row: it runs, every byte is compared, every way has its row.
#include "cli/bench/layers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace objectcache::cli {
namespace {

TEST(Layers, SmallRunHasARowForEachStoreLayoutAndMode) {
  LayersOptions options;
  options.common.small = true;
  Console console({.json = true, .quiet = true});
  testing::internal::CaptureStdout();
  const ExitCode code = run_bench_layers(options, console);
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_EQ(code, ExitCode::kOk);
  const auto report = nlohmann::json::parse(text, nullptr, false);
  ASSERT_TRUE(report.is_object()) << text;
  ASSERT_EQ(report["rows"].size(), 2U * 2U * 4U);
  for (const auto& row : report["rows"]) {
    EXPECT_GT(row["payload_mb_per_s"], 0);
    EXPECT_GE(row["ttft_ms_p50"], row["window_ms"].get<double>() * 32);
    EXPECT_GE(row["loaded_ms"], row["layer0_ms"].get<double>());
    EXPECT_EQ(row.contains("goal_met"), row["mode"] == "planned");
  }
}

TEST(Layers, RefusesAStoreThatIsNone) {
  LayersOptions options;
  options.url = "ftp://somewhere";
  Console console({.json = true, .quiet = true});
  EXPECT_EQ(run_bench_layers(options, console), ExitCode::kUsage);
}

}  // namespace
}  // namespace objectcache::cli
