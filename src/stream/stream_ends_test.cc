// Cancel, deadlines and limits: how streams end, wait and share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

#include "objectcache/layer_stream.h"
#include "stream/testing/stream_world.h"

namespace objectcache::stream {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using Fault = StrictFakeStore::Fault;
using Get = StrictFakeStore::Get;
using Kind = TestDestination::Kind;
using Script = StrictFakeStore::Script;

Script slow(Random& random) {
  return {.first_byte = microseconds(300 + random.below(900)),
          .piece_time = microseconds(50 + random.below(200)),
          .piece_bytes = 20 + random.below(300),
          .completion = microseconds(random.below(300)),
          .cancel_time = microseconds(random.below(1000))};
}

void expect_nothing_left(StreamWorld& world, const TestRead& read) {
  const auto before = read.destination->arena();
  ASSERT_TRUE(world.loop.run_to_idle());
  EXPECT_EQ(read.destination->arena(), before) << "written to after the end";
  EXPECT_EQ(world.problem(read), "");
  EXPECT_EQ(read.ended_calls, 1u);
  EXPECT_EQ(world.store.running(), 0u);
  EXPECT_EQ(world.memory.stats().lent_bytes, 0u);
  EXPECT_EQ(world.admission->usage().streams, 0u);
  EXPECT_EQ(world.loop.timers(), 0u);
}

class CancelAtEachStep : public testing::TestWithParam<ReadMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, CancelAtEachStep,
                         testing::Values(ReadMode::kPlanned, ReadMode::kLayerwise,
                                         ReadMode::kWholeObjects));

TEST_P(CancelAtEachStep, EndsWithNothingWrittenAfterwards) {
  bool completed = false;
  for (int step = 0; !completed; ++step) {
    ASSERT_LT(step, 2000);
    StreamWorld world({.seed = 7, .chunks = 5, .layers = 4, .units = 2});
    world.store.director = [&](const Get& get) {
      Script script = slow(world.random);
      if (get.number == 3) script.fault = Fault::kFlippedBit, script.fault_at = 4500;
      return script;
    };
    auto read = world.open({.connections = 3, .mode = GetParam(), .destination = Kind::kScattered});
    world.loop.run_for(microseconds(70) * step);
    completed = read->stream->ended();
    read->stream->cancel();
    read->stream->cancel();
    if (!completed) {
      EXPECT_FALSE(read->stream->ended()) << "cancel is asynchronous";
    }
    ASSERT_TRUE(world.run_to_end(*read));
    if (read->stream->ready_layers() < 4) {
      ASSERT_TRUE(read->stream->failure());
      EXPECT_EQ(read->stream->failure()->error.code, ErrorCode::kCancelled);
      const auto waited = read->stream->wait(3, world.loop.now());
      EXPECT_EQ(waited.error().code, ErrorCode::kCancelled);
    } else {
      EXPECT_FALSE(read->stream->failure());
    }
    expect_nothing_left(world, *read);
  }
}

TEST(Deadline, AtEachStepNamesLayerAndWhatIsMissing) {
  std::vector<std::uint32_t> layers_seen;
  for (int step = 0; step < 2000; ++step) {
    StreamWorld world({.seed = 9, .chunks = 5, .layers = 4});
    world.store.director = [&](const Get&) { return slow(world.random); };
    auto read = world.open(
        {.connections = 2, .mode = ReadMode::kLayerwise, .deadline = microseconds(50) * step});
    ASSERT_TRUE(read->stream);
    ASSERT_TRUE(world.run_to_end(*read));
    const std::uint32_t ready = read->stream->ready_layers();
    if (ready == 4) {
      EXPECT_FALSE(read->stream->failure());
      EXPECT_GT(step, 10);
      expect_nothing_left(world, *read);
      break;
    }
    ASSERT_TRUE(read->stream->failure());
    EXPECT_EQ(read->stream->failure()->error.code, ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(read->stream->failure()->error.message,
                HasSubstr("layer " + std::to_string(ready) + " of 4 is not complete"));
    if (layers_seen.empty() || layers_seen.back() != ready) layers_seen.push_back(ready);
    expect_nothing_left(world, *read);
  }
  EXPECT_THAT(layers_seen, ElementsAre(0, 1, 2, 3));
}

TEST(Deadline, AStalledStoreIsCutOff) {
  StreamWorld world;
  world.store.director = [&](const Get& get) {
    return Script{.fault = get.number == 2 ? Fault::kStall : Fault::kNone};
  };
  auto read = world.open({.deadline = milliseconds(300)});
  world.loop.run_for(milliseconds(299));
  EXPECT_FALSE(read->stream->failure());
  world.loop.run_for(milliseconds(2));
  EXPECT_EQ(read->stream->failure()->error.code, ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(read->stream->failure()->chunk);
  ASSERT_TRUE(world.run_to_end(*read));
  expect_nothing_left(world, *read);
}

TEST(Deadline, WaitingForATurnSaysSo) {
  StreamWorld world({.admission = {.requests_in_flight_max = 1}});
  world.store.director = [](const Get&) { return Script{.fault = Fault::kStall}; };
  auto first = world.open({.deadline = milliseconds(100)});
  auto second = world.open({.deadline = milliseconds(50)});
  world.loop.run_for(milliseconds(60));
  ASSERT_TRUE(second->stream->failure());
  EXPECT_THAT(second->stream->failure()->error.message, HasSubstr("waits for a turn"));
  ASSERT_TRUE(world.run_to_end(*first));
  expect_nothing_left(world, *first);
}

// ---------------------------------------------------------------- arguments

TEST(Arguments, ATooSmallAreaIsRefusedWithItsLayerAndSize) {
  StreamWorld world;
  auto read = world.open();
  std::vector<std::byte> memory(3 * 768);
  ReadRequest request;
  request.chunks = world.keys;
  request.deadline = world.loop.now() + milliseconds(100);
  const auto plan =
      plan::plan_read(read_job(world.source->layout, request), {.bytes_per_s = 1e9}).value();
  const auto open = [&](Destination destination, std::uint32_t last_tokens = 0) {
    request.destination = std::move(destination);
    request.last_chunk_tokens = last_tokens;
    return open_stream({.loop = world.loop,
                        .store = world.store,
                        .admission = *world.point,
                        .memory = world.memory},
                       {}, world.source, request, plan);
  };
  const auto areas = [&](std::vector<std::size_t> sizes) {
    std::vector<Segment> segments;
    for (const auto size : sizes) segments.push_back(Segment(memory).first(size));
    return segments;
  };
  auto refused = open(Destination::contiguous(areas({768, 767, 768})));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("layer 1 of 4 chunks needs 768 bytes"));
  EXPECT_THAT(refused.error().message, HasSubstr("has 767"));
  EXPECT_FALSE(open(Destination::contiguous(areas({768, 768}))));
  EXPECT_FALSE(open(Destination::contiguous(areas({768, 768, 768})), 9));
  EXPECT_TRUE(open(Destination::contiguous(areas({768, 768, 768}))));
  EXPECT_TRUE(open(Destination::contiguous(areas({600, 600, 600})), 1));

  std::vector<std::uint32_t> starts(13);
  for (std::uint32_t i = 0; i < 13; ++i) starts[i] = i;
  std::vector<std::size_t> sizes(12, 192);
  EXPECT_TRUE(open(Destination::scattered(areas(sizes), starts)));
  sizes[5] = 191;
  refused = open(Destination::scattered(areas(sizes), starts));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("layer 1 of chunk 1 needs 192 bytes"));
  starts[12] = 11;
  EXPECT_FALSE(open(Destination::scattered(areas(sizes), starts)));
  ASSERT_TRUE(world.run_to_end(*read));
}

TEST(Arguments, RefusalsLeaveNothingBehind) {
  StreamWorld world;
  auto read = world.open({.connections = 1000});
  ASSERT_TRUE(read->open_error);
  EXPECT_EQ(read->open_error->code, ErrorCode::kInvalidArgument);
  read = world.open({.windows = {milliseconds(1)}});
  ASSERT_TRUE(read->open_error);
  EXPECT_EQ(world.admission->usage().streams, 0u);
  EXPECT_TRUE(world.loop.run_to_idle());
}

TEST(Arguments, LargerReadsThanTheLimitAreRefused) {
  StreamWorld world({.stream = {.slices_max = 23}});
  auto read = world.open();  // 4 chunks, 3 layers, 2 units.
  ASSERT_TRUE(read->open_error);
  EXPECT_EQ(read->open_error->code, ErrorCode::kLimitExceeded);
  auto smaller = world.open({.chunks = 3});
  ASSERT_TRUE(smaller->stream);
  EXPECT_TRUE(world.run_to_end(*smaller));
}

// ---------------------------------------------------------------- signals

TEST(Signals, TheEventFdIsReadableAfterEachChange) {
  StreamWorld world;
  auto read = world.open({.mode = ReadMode::kLayerwise});
  const int fd = read->stream->event_fd();
  ASSERT_GE(fd, 0);
  EXPECT_EQ(read->stream->event_fd(), fd);
  const auto readable = [&] {
    std::uint64_t count = 0;
    return ::read(fd, &count, sizeof count) == sizeof count;
  };
  EXPECT_FALSE(readable());
  std::uint32_t ready = 0;
  bool ended = false;
  while (!ended) {
    world.loop.run_for(microseconds(20));
    const bool changed = read->stream->ready_layers() != ready || read->stream->ended();
    EXPECT_EQ(readable(), changed);
    ready = read->stream->ready_layers();
    ended = read->stream->ended();
  }
  EXPECT_FALSE(readable());
  auto late = world.open();
  ASSERT_TRUE(world.run_to_end(*late));
  std::uint64_t count = 0;
  EXPECT_EQ(::read(late->stream->event_fd(), &count, sizeof count), 8) << "made after the end";
}

TEST(Signals, StatsTellWhatHappened) {
  StreamWorld world;
  auto read = world.open({.mode = ReadMode::kLayerwise});
  ASSERT_TRUE(world.run_to_end(*read));
  const auto stats = read->stream->stats();
  EXPECT_EQ(stats.requests, 12u);
  const auto& layout = world.source->layout;
  EXPECT_EQ(stats.bytes, 4 * (layout.header_bytes() + layout.payload_bytes()));
  EXPECT_EQ(stats.rereads, 0u);
  EXPECT_GE(stats.first_byte, milliseconds(1));
  ASSERT_EQ(stats.layer_ready.size(), 3u);
  EXPECT_LT(stats.first_byte, stats.layer_ready[0]);
  EXPECT_LT(stats.layer_ready[0], stats.layer_ready[1]);
  EXPECT_EQ(stats.layer_waited.size(), 3u);
  EXPECT_EQ(stats.staging_bytes_peak, 2 * layout.header_bytes());
}

TEST(Signals, WaitingWithoutPatienceTellsThatTheStreamGoesOn) {
  StreamWorld world;
  auto read = world.open();
  const auto waited = read->stream->wait(0, std::chrono::steady_clock::now());
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(read->stream->failure());
  EXPECT_EQ(read->stream->wait(3, world.loop.now()).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(world.run_to_end(*read));
  EXPECT_TRUE(read->stream->cancel_and_wait(std::chrono::steady_clock::now()));
}

// ---------------------------------------------------------------- limits

TEST(Limits, StagingDoesNotGrowWithThePrefix) {
  std::vector<std::uint64_t> peaks;
  for (const std::uint32_t chunks : {4U, 40U, 400U}) {
    StreamWorld world({.chunks = chunks, .layers = 2, .units = 1});
    auto read = world.open({.connections = 4});
    ASSERT_TRUE(world.run_to_end(*read));
    EXPECT_FALSE(read->stream->failure());
    peaks.push_back(read->stream->stats().staging_bytes_peak);
  }
  EXPECT_THAT(peaks, ElementsAre(4 * 4096, 4 * 4096, 4 * 4096));
}

TEST(Limits, MemoryRunsOutAndStreamsWaitInOrder) {
  // Room for two headers; five streams of four chunks.
  StreamWorld world({.memory_bytes = 2 * 4096});
  world.store.director = [&](const Get&) { return Script{.first_byte = milliseconds(2)}; };
  std::vector<std::unique_ptr<TestRead>> reads;
  for (int i = 0; i < 5; ++i) reads.push_back(world.open({.connections = 4}));
  std::vector<std::size_t> order;
  std::vector<bool> seen(reads.size());
  for (int i = 0; i < 10'000 && order.size() < reads.size(); ++i) {
    world.loop.run_for(microseconds(100));
    EXPECT_LE(world.memory.stats().lent_bytes, 2u * 4096);
    for (std::size_t r = 0; r < reads.size(); ++r) {
      if (!seen[r] && reads[r]->stream->stats().bytes > 0) {
        seen[r] = true;
        order.push_back(r);
      }
    }
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
  for (auto& read : reads) {
    ASSERT_TRUE(world.run_to_end(*read));
    EXPECT_FALSE(read->stream->failure());
    EXPECT_EQ(world.problem(*read), "");
  }
  EXPECT_EQ(world.memory.stats().lent_bytes_max, 2u * 4096);
  EXPECT_EQ(world.memory.stats().lent_bytes, 0u);
}

TEST(Limits, AReadThatCanNeverHaveItsMemoryIsRefused) {
  StreamWorld world({.memory_bytes = 4095});
  auto read = world.open();
  ASSERT_TRUE(read->open_error);
  EXPECT_EQ(read->open_error->code, ErrorCode::kLimitExceeded);
  EXPECT_THAT(read->open_error->message, HasSubstr("read_memory_bytes"));
}

TEST(Limits, CancelWhileWaitingForMemory) {
  StreamWorld world({.memory_bytes = 4096});
  world.store.director = [](const Get&) { return Script{.fault = Fault::kStall}; };
  auto first = world.open({.deadline = milliseconds(500)});
  auto second = world.open();
  world.loop.run_for(milliseconds(5));
  second->stream->cancel();
  world.loop.run_for(milliseconds(1));
  EXPECT_TRUE(second->stream->ended());
  EXPECT_EQ(second->stream->failure()->error.code, ErrorCode::kCancelled);
  ASSERT_TRUE(world.run_to_end(*first));
  expect_nothing_left(world, *first);
}

TEST(Limits, GrantsAreNeverExceededAndBoundTheBytesInFlight) {
  for (const std::uint64_t bytes_max : {1'000U, 5'000U, 20'000U}) {
    StreamWorld world({.chunks = 6,
                       .layers = 5,
                       .admission = {.bytes_in_flight_max = bytes_max, .grant_bytes_min = 500}});
    world.store.director = [&](const Get&) { return slow(world.random); };
    std::vector<std::unique_ptr<TestRead>> reads;
    for (int i = 0; i < 4; ++i) {
      reads.push_back(world.open({.connections = 3, .mode = ReadMode::kWholeObjects}));
    }
    for (auto& read : reads) {
      ASSERT_TRUE(world.run_to_end(*read));
      EXPECT_FALSE(read->stream->failure()) << read->stream->failure()->error.to_string();
      EXPECT_EQ(world.problem(*read), "");
    }
    EXPECT_LE(world.store.granted_open_max(), bytes_max);
    EXPECT_GT(world.store.granted_open_max(), bytes_max / 2);
    EXPECT_EQ(world.admission->usage().bytes_in_flight, 0u);
  }
}

TEST(Limits, RunsAheadOfTheOldestLayerOnlyAsFarAsAllowed) {
  // One chunk is late with layer 0; the others must not run off.
  for (const std::uint64_t lookahead : {std::uint64_t{0}, std::uint64_t{1}}) {
    StreamWorld world({.chunks = 4, .layers = 8});
    world.store.director = [&](const Get& get) {
      return Script{.first_byte = get.key == world.key(2) ? milliseconds(100) : milliseconds(1)};
    };
    auto read = world.open(
        {.connections = 4, .mode = ReadMode::kWholeObjects, .lookahead_bytes = lookahead});
    world.loop.run_for(milliseconds(90));
    EXPECT_EQ(read->stream->ready_layers(), 0u);
    const auto& layout = world.source->layout;
    const std::uint64_t layer_0 = 3 * (layout.header_bytes() + layout.slice_bytes(0));
    const std::uint64_t ahead = read->stream->stats().bytes - layer_0;
    EXPECT_LE(ahead, lookahead == 0 ? 4 * layout.slice_bytes(1) : layout.slice_bytes(1));
    EXPECT_GT(ahead, 0u);
    ASSERT_TRUE(world.run_to_end(*read));
    EXPECT_FALSE(read->stream->failure());
    EXPECT_EQ(world.problem(*read), "");
  }
}

TEST(Limits, HeldStreamsNeverWaitForEachOther) {
  // Each stream wants six reads at once, but six is all there is for both.
  StreamWorld world({.chunks = 6, .layers = 6, .admission = {.requests_in_flight_max = 6}});
  world.store.director = [&](const Get&) { return slow(world.random); };
  auto a = world.open({.connections = 6, .mode = ReadMode::kWholeObjects});
  auto b = world.open({.connections = 6, .mode = ReadMode::kWholeObjects});
  ASSERT_TRUE(world.run_to_end(*a));
  ASSERT_TRUE(world.run_to_end(*b));
  EXPECT_FALSE(a->stream->failure());
  EXPECT_FALSE(b->stream->failure());
  EXPECT_LE(world.store.running_max(), 6u);
}

TEST(Limits, TheStreamThatIsDueFirstIsServedFirst) {
  StreamWorld world({.chunks = 8, .layers = 4, .admission = {.requests_in_flight_max = 2}});
  const auto windows = [](int ms) { return std::vector<Duration>(4, milliseconds(ms)); };
  auto relaxed =
      world.open({.connections = 8, .mode = ReadMode::kLayerwise, .windows = windows(500)});
  auto urgent = world.open({.connections = 8, .mode = ReadMode::kLayerwise, .windows = windows(1)});
  while (!urgent->stream->ended()) world.loop.run_for(microseconds(100));
  EXPECT_LE(relaxed->stream->ready_layers(), 1u);
  EXPECT_FALSE(urgent->stream->failure());
  ASSERT_TRUE(world.run_to_end(*relaxed));
  EXPECT_FALSE(relaxed->stream->failure());
}

TEST(Limits, TenThousandStreamsKeepTheLimits) {
  constexpr std::uint32_t kStreams = 10'000;
  StreamWorld world({.chunks = 2,
                     .layers = 2,
                     .units = 1,
                     .memory_bytes = 40 * 4096,
                     .admission = {.streams_max = kStreams, .requests_in_flight_max = 64}});
  world.store.director = [&](const Get&) {
    return Script{.first_byte = microseconds(100 + world.random.below(100)),
                  .completion = microseconds(1)};
  };
  std::vector<std::unique_ptr<TestRead>> reads;
  for (std::uint32_t i = 0; i < kStreams; ++i) {
    reads.push_back(world.open({.deadline = std::chrono::seconds(1000)}));
    ASSERT_TRUE(reads.back()->stream) << reads.back()->open_error->to_string();
  }
  auto refused = world.open();
  ASSERT_TRUE(refused->open_error);
  EXPECT_EQ(refused->open_error->code, ErrorCode::kLimitExceeded);
  for (auto& read : reads) {
    ASSERT_TRUE(world.run_to_end(*read));
    ASSERT_FALSE(read->stream->failure()) << read->stream->failure()->error.to_string();
    ASSERT_EQ(world.problem(*read), "");
  }
  EXPECT_LE(world.store.running_max(), 64u);
  EXPECT_LE(world.memory.stats().lent_bytes_max, 40u * 4096);
  EXPECT_EQ(world.admission->usage().streams, 0u);
}

}  // namespace
}  // namespace objectcache::stream
