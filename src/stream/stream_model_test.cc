// Whole streams over a modelled link on a virtual clock, beside the best that is possible.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "objectcache/layer_stream.h"
#include "store/memory/memory_store.h"
#include "store/modelled/modelled_link_store.h"
#include "stream/testing/stream_world.h"

namespace objectcache::stream {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::uint32_t kLayers = 32;
constexpr Duration kFirstByte = std::chrono::milliseconds(1);

/// A measured row: a prefix of `cached_tokens`, and how long its step computes without any load.
struct Row {
  const char* name;
  std::uint32_t cached_tokens;
  double total_ms;
  std::uint32_t chunks;  ///< Scaled down; slices too: see link_bytes_per_s().
};
constexpr Row kRows[] = {{"4K 50%", 2'048, 185.31, 8},     {"4K 87.5%", 3'584, 63.47, 14},
                         {"16K 50%", 8'192, 955.89, 4},    {"16K 87.5%", 14'336, 281.76, 7},
                         {"32K 50%", 16'384, 2589.25, 8},  {"32K 87.5%", 28'672, 763.19, 14},
                         {"64K 50%", 32'768, 8672.79, 16}, {"64K 87.5%", 57'344, 2423.90, 28}};
constexpr std::uint64_t kSliceBytes = 16'384;

/// The link of 100 Gbit/s, scaled down by as much as the bytes: every time stays what it was.
double link_bytes_per_s(const Row& row) {
  const double scale = row.cached_tokens * 4096.0 / (static_cast<double>(row.chunks) * kSliceBytes);
  return 12.5e9 / scale;
}

struct Outcome {
  double ttft_ms = 0;
  double predicted_ms = 0;  ///< What the plan promised.
  std::uint64_t requests = 0;
};

Outcome replay(const Row& row, ReadMode mode, std::uint32_t connections) {
  StreamWorld world({.chunks = row.chunks,
                     .layers = kLayers,
                     .units = 1,
                     .unit_tokens = 64,
                     .bytes_per_token = {kSliceBytes / 64}});
  store::MemoryStore objects;
  for (const auto& [key, object] : world.store.objects) {
    objects.put(world.loop,
                {.key = {key},
                 .body = {ConstSegment(object.bytes)},
                 .mode = store::PutMode::kReplace,
                 .deadline = TimePoint::max()},
                [](Result<store::PutAnswer> answer) { EXPECT_TRUE(answer); });
  }
  EXPECT_TRUE(world.loop.run_to_idle());
  store::ModelledLinkStore store(objects, {.first_byte = kFirstByte,
                                           .read_bytes_per_second = link_bytes_per_s(row),
                                           .piece_bytes = 4096});
  std::vector<std::byte> memory(kLayers * row.chunks * kSliceBytes);
  std::vector<Segment> areas;
  for (std::uint32_t l = 0; l < kLayers; ++l) {
    areas.push_back(
        Segment(memory).subspan(l * row.chunks * kSliceBytes, row.chunks * kSliceBytes));
  }
  const auto window = std::chrono::duration_cast<Duration>(Seconds(row.total_ms / 1e3 / kLayers));
  ReadRequest request;
  request.chunks = world.keys;
  request.destination = Destination::contiguous(areas);
  request.windows.assign(kLayers, window);
  request.deadline = world.loop.now() + std::chrono::seconds(100);
  request.connections_max = connections;
  auto plan = plan::plan_read(read_job(world.source->layout, request),
                              {.connections = connections,
                               .bytes_per_s = link_bytes_per_s(row),
                               .first_byte = kFirstByte,
                               // The link's first-byte times never vary: reads go in lockstep.
                               .first_byte_exposed = 1},
                              {.mode = plan_mode(mode), .request_bytes_min = 0})
                  .value();
  const double predicted_ms = row.total_ms + Seconds(plan.predicted_stall).count() * 1e3;
  auto stream =
      open_stream(
          {.loop = world.loop, .store = store, .admission = *world.point, .memory = world.memory},
          {}, world.source, std::move(request), plan)
          .value();
  EXPECT_TRUE(world.loop.run_to_idle());
  EXPECT_TRUE(stream.ended() && !stream.failure());
  const auto stats = stream.stats();
  Duration gpu{};
  for (const Duration ready : stats.layer_ready) gpu = std::max(gpu, ready) + window;
  return {.ttft_ms = Seconds(gpu).count() * 1e3,
          .predicted_ms = predicted_ms,
          .requests = stats.requests};
}

TEST(Model, StreamsDeliverWhatTheirPlansPromiseAndPlansComeCloseToTheIdeal) {
  fmt::print("{:<10} {:>3} {:>3} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  (TTFT in ms; requests)\n",
             "row", "N", "K", "ideal", "promised", "planned", "layerwise", "whole", "chunkwise");
  for (const Row& row : kRows) {
    const std::uint32_t connections = std::max(1U, row.chunks / 4);
    const double x_ms = row.chunks * kSliceBytes / link_bytes_per_s(row) * 1e3;
    const double c_ms = row.total_ms / kLayers;
    const double ideal_ms = kLayers * c_ms + x_ms + (kLayers - 1) * std::max(0.0, x_ms - c_ms);
    const auto planned = replay(row, ReadMode::kPlanned, connections);
    const auto layerwise = replay(row, ReadMode::kLayerwise, connections);
    const auto whole = replay(row, ReadMode::kWholeObjects, connections);
    const auto chunkwise = replay(row, ReadMode::kChunkwise, connections);
    fmt::print(
        "{:<10} {:>3} {:>3} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}  ({}, {}, {}, "
        "{})\n",
        row.name, row.chunks, connections, ideal_ms, planned.predicted_ms, planned.ttft_ms,
        layerwise.ttft_ms, whole.ttft_ms, chunkwise.ttft_ms, planned.requests, layerwise.requests,
        whole.requests, chunkwise.requests);
    for (const Outcome& outcome : {planned, layerwise, whole, chunkwise}) {
      EXPECT_LE(outcome.ttft_ms, 1.001 * outcome.predicted_ms + 0.1) << row.name;
    }
    // With fewer connections than chunks each round of layer 0 pays a first byte. Headers weigh
    // more here than at full size: slices were scaled down, they were not.
    const double header_ms = row.chunks * 4096 / link_bytes_per_s(row) * 1e3;
    const double rounds = std::ceil(static_cast<double>(row.chunks) / connections);
    EXPECT_LE(planned.ttft_ms, 1.005 * ideal_ms + header_ms + 2 * rounds * 1.0) << row.name;
    EXPECT_GE(planned.ttft_ms, ideal_ms) << row.name << ": better than the best is a wrong model";
    EXPECT_LE(planned.ttft_ms, layerwise.ttft_ms + 0.1) << row.name;
    EXPECT_LE(planned.ttft_ms, whole.ttft_ms) << row.name;
    EXPECT_LE(planned.ttft_ms, chunkwise.ttft_ms) << row.name;
  }
}

}  // namespace
}  // namespace objectcache::stream
