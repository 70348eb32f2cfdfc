// What becomes of a stream when the store misbehaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "objectcache/layer_stream.h"
#include "stream/testing/stream_world.h"

namespace objectcache::stream {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Fault = StrictFakeStore::Fault;
using Get = StrictFakeStore::Get;
using Script = StrictFakeStore::Script;

ErrorCode failure_code(const TestRead& read) {
  return read.stream->failure() ? read.stream->failure()->error.code : ErrorCode{};
}

std::optional<std::uint32_t> failure_chunk(const TestRead& read) {
  return read.stream->failure() ? read.stream->failure()->chunk : std::nullopt;
}

/// Ended, nothing held, nothing wrong, and nothing written afterwards.
void expect_clean_end(StreamWorld& world, TestRead& read) {
  ASSERT_TRUE(world.run_to_end(read));
  EXPECT_EQ(world.problem(read), "");
  EXPECT_EQ(read.ended_calls, 1u);
  const auto before = read.destination->arena();
  ASSERT_TRUE(world.loop.run_to_idle());
  EXPECT_EQ(read.destination->arena(), before);
  EXPECT_EQ(world.store.running(), 0u);
  EXPECT_EQ(world.memory.stats().lent_bytes, 0u);
  EXPECT_EQ(world.admission->usage().streams, 0u);
  EXPECT_EQ(world.admission->usage().bytes_in_flight, 0u);
  EXPECT_EQ(world.admission->usage().requests_in_flight, 0u);
}

class Faults : public testing::TestWithParam<ObjectLayout> {
 protected:
  WorldOptions world_options(WorldOptions options = {}) {
    options.layout = GetParam();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, Faults,
                         testing::Values(ObjectLayout::kChunk, ObjectLayout::kLayer),
                         [](const auto& param) {
                           return param.param == ObjectLayout::kChunk ? "chunk" : "layer";
                         });

TEST_P(Faults, AFlippedBitCostsOneReadOfThatUnitAlone) {
  StreamWorld world(world_options());
  const auto& layout = world.source->layout;
  world.store.director = [&](const Get& get) {
    // The second unit of layer 0 of chunk 1.
    const bool hit = get.number < 4 && get.key == world.key(1) && get.offset == 0;
    return Script{.fault = hit ? Fault::kFlippedBit : Fault::kNone,
                  .fault_at = layout.header_bytes() + layout.unit_bytes(0) + 3};
  };
  auto read = world.open({.connections = 4});
  expect_clean_end(world, *read);
  EXPECT_FALSE(read->stream->failure());
  EXPECT_EQ(read->stream->ready_layers(), 3u);
  EXPECT_EQ(read->stream->stats().rereads, 1u);
  EXPECT_EQ(std::ranges::count_if(world.store.gets,
                                  [&](const Get& get) {
                                    return get.key == world.key(1) &&
                                           get.offset ==
                                               layout.header_bytes() + layout.unit_bytes(0) &&
                                           get.length == layout.unit_bytes(0);
                                  }),
            1);
  EXPECT_THAT(read->bad_objects, IsEmpty());
}

TEST_P(Faults, AWrongChecksumTwiceFailsTheStreamAndNamesTheChunk) {
  StreamWorld world(world_options());
  const std::uint32_t bad_layer = 1;
  // What lies in the store is bad, whoever reads it.
  auto& object =
      world.store.objects[world.key(2, GetParam() == ObjectLayout::kLayer ? bad_layer : 0)];
  object.bytes[world.source->layout.slice_offset(bad_layer) + 5] ^= std::byte{1};
  auto read = world.open({.mode = ReadMode::kLayerwise});
  expect_clean_end(world, *read);
  EXPECT_EQ(failure_code(*read), ErrorCode::kCorrupt);
  EXPECT_EQ(failure_chunk(*read), 2u);
  EXPECT_THAT(read->stream->failure()->error.message, HasSubstr("layer 1, unit 0"));
  EXPECT_THAT(read->stream->failure()->error.key, HasSubstr(world.keys[2].hex()));
  EXPECT_EQ(read->stream->ready_layers(), bad_layer);
  EXPECT_THAT(read->bad_objects, ElementsAre(Pair(2u, ErrorCode::kCorrupt)));
  const auto waited = read->stream->wait(bad_layer, world.loop.now());
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(read->stream->wait(0, world.loop.now()));
}

TEST_P(Faults, ABadHeaderIsReadOnceMore) {
  StreamWorld world(world_options());
  world.store.director = [&](const Get& get) {
    const bool hit = get.key == world.key(0) && get.number < 4;
    return Script{.fault = hit ? Fault::kFlippedBit : Fault::kNone, .fault_at = 40};
  };
  auto read = world.open({.connections = 4});
  expect_clean_end(world, *read);
  EXPECT_FALSE(read->stream->failure());
  EXPECT_EQ(read->stream->stats().rereads, 1u);
}

TEST_P(Faults, ABadHeaderTwiceFails) {
  StreamWorld world(world_options());
  world.store.objects[world.key(3)].bytes[40] ^= std::byte{4};
  auto read = world.open();
  expect_clean_end(world, *read);
  EXPECT_EQ(failure_code(*read), ErrorCode::kCorrupt);
  EXPECT_EQ(failure_chunk(*read), 3u);
  EXPECT_THAT(read->bad_objects, ElementsAre(Pair(3u, ErrorCode::kCorrupt)));
  EXPECT_EQ(read->stream->ready_layers(), 0u);
}

TEST_P(Faults, ASwappedObjectIsRefused) {
  StreamWorld world(world_options());
  world.store.objects[world.key(0)] = world.store.objects[world.key(1)];
  auto read = world.open();
  expect_clean_end(world, *read);
  EXPECT_EQ(failure_code(*read), ErrorCode::kIncompatible);
  EXPECT_EQ(failure_chunk(*read), 0u);
  EXPECT_THAT(read->bad_objects, ElementsAre(Pair(0u, ErrorCode::kIncompatible)));
}

TEST_P(Faults, AnotherObjectsBodyOnceIsMended) {
  StreamWorld world(world_options());
  world.store.director = [&](const Get& get) {
    const bool hit = get.number == 0;
    return Script{.fault = hit ? Fault::kOtherBody : Fault::kNone, .other = world.key(3)};
  };
  auto read = world.open();
  expect_clean_end(world, *read);
  EXPECT_FALSE(read->stream->failure());
  EXPECT_GE(read->stream->stats().rereads, 1u);
}

TEST_P(Faults, AHeaderThatComesLastVerifiesWhatWaited) {
  StreamWorld world(world_options());
  world.store.director = [&](const Get& get) {
    const bool main = get.offset == 0 && get.length > world.source->layout.header_bytes();
    // Headers of the first attempt are bad, and their second reading takes long.
    return Script{.first_byte = get.length == world.source->layout.header_bytes() ? milliseconds(50)
                                                                                  : milliseconds(1),
                  .fault = main ? Fault::kFlippedBit : Fault::kNone,
                  .fault_at = 9};
  };
  auto read = world.open({.connections = 16, .mode = ReadMode::kWholeObjects});
  world.loop.run_for(milliseconds(45));
  EXPECT_EQ(read->stream->ready_layers(), 0u);
  expect_clean_end(world, *read);
  EXPECT_FALSE(read->stream->failure());
  EXPECT_EQ(read->stream->ready_layers(), 3u);
  EXPECT_EQ(read->stream->stats().rereads, 4u);
}

TEST_P(Faults, AMissingChunkFailsWithItsIndex) {
  StreamWorld world(world_options({.chunks = 6}));
  world.store.objects.erase(world.key(4));
  auto read = world.open({.connections = 3});
  expect_clean_end(world, *read);
  EXPECT_EQ(failure_code(*read), ErrorCode::kNotFound);
  EXPECT_EQ(failure_chunk(*read), 4u);
  EXPECT_THAT(read->stream->failure()->error.message, HasSubstr("chunk 4 of 6 is gone"));
  EXPECT_THAT(read->bad_objects, IsEmpty());
}

TEST_P(Faults, TheFirstOfSeveralMissingChunksIsNamed) {
  StreamWorld world(world_options({.chunks = 8}));
  for (std::uint32_t c = 3; c < 8; ++c) world.store.objects.erase(world.key(c));
  world.store.director = [&](const Get& get) {
    // The later the chunk, the earlier its answer.
    std::uint32_t chunk = 0;
    while (get.key != world.key(chunk)) ++chunk;
    return Script{.first_byte = milliseconds(9 - chunk)};
  };
  auto read = world.open({.connections = 8});
  expect_clean_end(world, *read);
  EXPECT_EQ(failure_code(*read), ErrorCode::kNotFound);
  EXPECT_EQ(failure_chunk(*read), 3u);
}

TEST_P(Faults, ASlowEarlierChunkDoesNotDelayTheFailureForLong) {
  StreamWorld world(world_options({.chunks = 4}));
  world.store.objects.erase(world.key(3));
  world.store.director = [&](const Get& get) {
    return Script{.first_byte = get.key == world.key(0) ? milliseconds(5000) : milliseconds(1)};
  };
  auto read = world.open({.connections = 4});
  world.loop.run_for(milliseconds(8));
  EXPECT_FALSE(read->stream->failure());
  world.loop.run_for(milliseconds(5));
  EXPECT_EQ(failure_chunk(*read), 3u);
  expect_clean_end(world, *read);
}

TEST_P(Faults, MoreChunksThanExist) {
  StreamWorld world(world_options());
  auto read = world.open({.chunks = 9, .connections = 4});
  ASSERT_TRUE(world.run_to_end(*read));
  EXPECT_EQ(failure_code(*read), ErrorCode::kNotFound);
  EXPECT_EQ(failure_chunk(*read), 4u);
}

TEST_P(Faults, AShortAnswerIsReadOnceMore) {
  StreamWorld world(world_options());
  world.store.director = [&](const Get& get) {
    return Script{.fault = get.number == 1 ? Fault::kOutOfRange : Fault::kNone};
  };
  auto read = world.open();
  expect_clean_end(world, *read);
  EXPECT_FALSE(read->stream->failure());
  EXPECT_EQ(read->stream->stats().rereads, 1u);
}

TEST_P(Faults, ATruncatedObjectFails) {
  StreamWorld world(world_options());
  world.store.objects[world.key(1)].bytes.resize(world.source->layout.header_bytes() + 10);
  auto read = world.open();
  expect_clean_end(world, *read);
  EXPECT_EQ(failure_code(*read), ErrorCode::kCorrupt);
  EXPECT_EQ(failure_chunk(*read), 1u);
  EXPECT_THAT(read->bad_objects, ElementsAre(Pair(1u, ErrorCode::kCorrupt)));
}

TEST_P(Faults, WhatTheStoreFindsCorruptIsABadObject) {
  StreamWorld world(world_options());
  world.store.director = [&](const Get& get) {
    return Script{.fault = get.key == world.key(2) ? Fault::kCorruptError : Fault::kNone};
  };
  auto read = world.open();
  expect_clean_end(world, *read);
  EXPECT_EQ(failure_chunk(*read), 2u);
  EXPECT_THAT(read->bad_objects, ElementsAre(Pair(2u, ErrorCode::kCorrupt)));
}

TEST_P(Faults, AStoreThatIsDownIsNoChunksFault) {
  StreamWorld world(world_options());
  world.store.director = [&](const Get& get) {
    return Script{.fault = get.number == 2 ? Fault::kError : Fault::kNone, .fault_at = 30};
  };
  auto read = world.open();
  expect_clean_end(world, *read);
  EXPECT_EQ(failure_code(*read), ErrorCode::kUnavailable);
  EXPECT_FALSE(failure_chunk(*read));
  EXPECT_EQ(read->stream->failure()->error.action, "GET");
  EXPECT_THAT(read->bad_objects, IsEmpty());
}

// ---------------------------------------------------------------- versions

/// Chunk 1 is read by several requests; from the `change_at`-th of them on it has other content.
struct ChangingChunk {
  StreamWorld world;
  std::uint32_t reads_of_it = 0;
  std::uint32_t changes = 0;

  explicit ChangingChunk(std::vector<std::uint32_t> change_at) : world({.chunks = 3, .layers = 4}) {
    world.store.director = [this, change_at = std::move(change_at)](const Get& get) {
      if (get.key == world.key(1)) {
        if (changes < change_at.size() && reads_of_it == change_at[changes]) {
          ++changes;
          world.republish(1, "new" + std::to_string(changes), 100 + changes);
        }
        ++reads_of_it;
        return Script{};
      }
      // The others are slow, so that no layer completes early.
      return Script{.first_byte = milliseconds(20)};
    };
  }
};

TEST(Versions, ARestartDeliversTheNewVersionWhole) {
  ChangingChunk changing({1});
  auto read = changing.world.open(
      {.connections = 4, .mode = ReadMode::kLayerwise, .lookahead_bytes = 1 << 20});
  expect_clean_end(changing.world, *read);
  EXPECT_EQ(changing.changes, 1u);
  EXPECT_FALSE(read->stream->failure()) << read->stream->failure()->error.to_string();
  EXPECT_EQ(read->stream->ready_layers(), 4u);
}

TEST(Versions, ASecondChangeIsAConflict) {
  ChangingChunk changing({1, 3});
  auto read = changing.world.open(
      {.connections = 4, .mode = ReadMode::kLayerwise, .lookahead_bytes = 1 << 20});
  expect_clean_end(changing.world, *read);
  EXPECT_EQ(changing.changes, 2u);
  EXPECT_EQ(failure_code(*read), ErrorCode::kConflict);
  EXPECT_FALSE(failure_chunk(*read));
  EXPECT_EQ(read->stream->ready_layers(), 0u);
}

TEST(Versions, ReadsAfterTheFirstAnswerAskForItsVersion) {
  StreamWorld world({.chunks = 3, .layers = 4});
  auto read = world.open({.connections = 1, .mode = ReadMode::kLayerwise});
  expect_clean_end(world, *read);
  for (const Get& get : world.store.gets) {
    const std::string expected = get.offset == 0 ? "" : world.store.objects[get.key].version;
    EXPECT_EQ(get.version, expected) << "offset " << get.offset;
  }
}

TEST(Versions, AChangeAfterAnAnnouncementNeverTouchesAnnouncedBytes) {
  StreamWorld world({.chunks = 3, .layers = 4});
  auto read = world.open({.connections = 1, .mode = ReadMode::kLayerwise});
  while (read->stream->ready_layers() == 0) world.loop.run_for(microseconds(100));
  const auto old_slice = world.slice(0, 1);
  world.republish(1, "new", 5);
  ASSERT_TRUE(world.run_to_end(*read));
  EXPECT_EQ(failure_code(*read), ErrorCode::kConflict);
  EXPECT_THAT(read->stream->failure()->error.message, HasSubstr("chunk 1 of 3 was replaced"));
  EXPECT_EQ(read->destination->problem(0, 1, old_slice), "");
}

TEST(Versions, TwoReadsOfOneChunkMustBeOfOneVersionEvenIfTheStoreCannotTell) {
  StreamWorld world({.chunks = 2, .layers = 3});
  world.store.director = [&](const Get& get) {
    // All start at once, before any answer could pin the others.
    return Script{.first_byte = get.key == world.key(1) ? milliseconds(20) : milliseconds(1),
                  .fault = get.number == 0 ? Fault::kOtherVersion : Fault::kNone};
  };
  auto read = world.open({.connections = 4, .mode = ReadMode::kLayerwise});
  expect_clean_end(world, *read);
  EXPECT_FALSE(read->stream->failure());
  EXPECT_EQ(read->stream->ready_layers(), 3u);
  EXPECT_GT(read->stream->stats().requests, 6u);
}

}  // namespace
}  // namespace objectcache::stream
