#include "objectcache/layer_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "stream/testing/stream_world.h"

namespace objectcache::stream {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Kind = TestDestination::Kind;
using Fault = StrictFakeStore::Fault;
using Get = StrictFakeStore::Get;
using Script = StrictFakeStore::Script;

TEST(LayerStream, DeliversAllLayersInOrder) {
  StreamWorld world;
  auto read = world.open();
  ASSERT_TRUE(read->stream);
  EXPECT_EQ(read->stream->ready_layers(), 0u);
  EXPECT_EQ(read->stream->layers(), 3u);
  ASSERT_TRUE(world.run_to_end(*read));
  EXPECT_FALSE(read->stream->failure());
  EXPECT_EQ(read->stream->ready_layers(), 3u);
  EXPECT_EQ(world.problem(*read), "");
  EXPECT_TRUE(read->stream->wait(2, world.loop.now()));
  EXPECT_EQ(read->ended_calls, 1u);
  EXPECT_EQ(world.admission->usage().streams, 0u);
  EXPECT_EQ(world.memory.stats().lent_bytes, 0u);
}

struct Shape {
  const char* name;
  WorldOptions world;
  ReadOptions read;
};

class Shapes : public testing::TestWithParam<std::tuple<Shape, ReadMode, ObjectLayout, Kind>> {};

TEST_P(Shapes, EveryByteIsRight) {
  auto [shape, mode, layout, kind] = GetParam();
  shape.world.layout = layout;
  for (std::uint32_t connections : {1U, 2U, 3U, 16U}) {
    StreamWorld world(shape.world);
    // First bytes, pieces and completions in an order that changes from read to read.
    world.store.director = [&](const Get&) {
      return Script{.first_byte = microseconds(1 + world.random.below(3000)),
                    .piece_time = microseconds(1 + world.random.below(300)),
                    .piece_bytes = 1 + world.random.below(700),
                    .completion = microseconds(world.random.below(2000)),
                    .report_progress = world.random.below(4) != 0};
    };
    shape.read.mode = mode;
    shape.read.destination = kind;
    shape.read.connections = connections;
    auto read = world.open(shape.read);
    ASSERT_TRUE(read->stream) << read->open_error->to_string();
    std::uint32_t ready = 0;
    while (!read->stream->ended()) {
      world.loop.run_for(microseconds(50));
      ASSERT_GE(read->stream->ready_layers(), ready);
      ready = read->stream->ready_layers();
      ASSERT_EQ(world.problem(*read), "");
      ASSERT_LE(world.store.running(), connections);
    }
    EXPECT_FALSE(read->stream->failure()) << read->stream->failure()->error.to_string();
    EXPECT_EQ(read->stream->ready_layers(), shape.world.layers);
    EXPECT_EQ(world.problem(*read), "");
    EXPECT_EQ(world.memory.stats().lent_bytes, 0u);
    EXPECT_EQ(world.store.granted_open(), 0u);
    EXPECT_EQ(read->stream->stats().rereads, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Shapes,
    testing::Combine(
        testing::Values(
            Shape{"one", {.chunks = 1, .layers = 1, .units = 1}, {}},
            Shape{"wide", {.chunks = 13, .layers = 2, .units = 1}, {}},
            Shape{"deep", {.chunks = 3, .layers = 17, .units = 2}, {}},
            Shape{"unequal",
                  {.chunks = 5, .layers = 4, .units = 3, .bytes_per_token = {8, 40, 1, 16}},
                  {}},
            Shape{"part_of_a_unit", {.chunks = 3, .layers = 5, .units = 4}, {.last_tokens = 6}},
            Shape{"part_at_a_unit", {.chunks = 2, .layers = 5, .units = 4}, {.last_tokens = 8}},
            Shape{"one_token", {.chunks = 1, .layers = 3, .units = 2}, {.last_tokens = 1}}),
        testing::Values(ReadMode::kPlanned, ReadMode::kChunkwise, ReadMode::kLayerwise,
                        ReadMode::kPublished, ReadMode::kWholeObjects),
        testing::Values(ObjectLayout::kChunk, ObjectLayout::kLayer),
        testing::Values(Kind::kContiguous, Kind::kScattered)),
    [](const auto& param) {
      return std::string(std::get<0>(param.param).name) + "_" +
             std::to_string(static_cast<int>(std::get<1>(param.param))) +
             (std::get<2>(param.param) == ObjectLayout::kChunk ? "_chunk" : "_layer") +
             (std::get<3>(param.param) == Kind::kContiguous ? "_areas" : "_segments");
    });

}  // namespace
}  // namespace objectcache::stream
