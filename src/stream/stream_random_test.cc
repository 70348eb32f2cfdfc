// Random shapes, random orders and random faults: whatever happens, a byte that was announced is
// right and is never touched again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "objectcache/layer_stream.h"
#include "stream/testing/stream_world.h"

namespace objectcache::stream {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Fault = StrictFakeStore::Fault;
using Get = StrictFakeStore::Get;
using Kind = TestDestination::Kind;
using Script = StrictFakeStore::Script;

// Sanitizers make everything ten times slower; the full number is for the plain builds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kFaults = 10'000;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::uint64_t kFaults = 10'000;
#else
constexpr std::uint64_t kFaults = 100'000;
#endif
#else
constexpr std::uint64_t kFaults = 100'000;
#endif

// Only a stalled store makes a stream wait so long.
constexpr auto kLongDeadline = std::chrono::seconds(20);

struct Totals {
  std::uint64_t streams = 0;
  std::uint64_t faults = 0;
  std::uint64_t whole = 0;         // Delivered all layers.
  std::uint64_t whole_mended = 0;  // ... although something had to be read again.
  std::uint64_t bytes_checked = 0;
  std::map<ErrorCode, std::uint64_t> failures;
};

WorldOptions random_world(std::uint64_t seed, Random& random) {
  WorldOptions options{.seed = seed,
                       .chunks = 1 + static_cast<std::uint32_t>(random.below(6)),
                       .layers = 1 + static_cast<std::uint32_t>(random.below(5)),
                       .units = 1 + static_cast<std::uint32_t>(random.below(3)),
                       .unit_tokens = 1 + static_cast<std::uint32_t>(random.below(4))};
  options.bytes_per_token.clear();
  for (std::uint32_t l = 0; l < options.layers; ++l) {
    options.bytes_per_token.push_back(1 + random.below(40));
  }
  options.layout = random.below(2) == 0 ? ObjectLayout::kChunk : ObjectLayout::kLayer;
  options.memory_bytes = 8192 * (1 + random.below(8));
  options.admission.requests_in_flight_max = 1 + static_cast<std::uint32_t>(random.below(12));
  if (random.below(2) == 0) {
    options.admission.bytes_in_flight_max = 1 + random.below(20'000);
    options.admission.grant_bytes_min = 1 + random.below(3'000);
  }
  return options;
}

Fault random_fault(Random& random) {
  const auto roll = random.below(100);
  if (roll < 30) return Fault::kFlippedBit;
  if (roll < 42) return Fault::kGarbage;
  if (roll < 54) return Fault::kOtherBody;
  if (roll < 66) return Fault::kOtherVersion;
  if (roll < 76) return Fault::kVersionChanged;
  if (roll < 86) return Fault::kOutOfRange;
  if (roll < 90) return Fault::kError;
  if (roll < 94) return Fault::kStall;
  if (roll < 97) return Fault::kMissing;
  return Fault::kCorruptError;
}

ReadOptions random_read(StreamWorld& world, std::uint32_t chunks, std::uint32_t layers) {
  Random& random = world.random;
  ReadOptions options;
  options.chunks = 1 + static_cast<std::uint32_t>(random.below(chunks));
  options.last_tokens =
      static_cast<std::uint32_t>(random.below(world.source->layout.chunk_tokens() + 1));
  options.connections = 1 + static_cast<std::uint32_t>(random.below(8));
  options.mode = static_cast<ReadMode>(random.below(5));
  options.destination = random.below(2) == 0 ? Kind::kContiguous : Kind::kScattered;
  if (random.below(2) == 0) {
    for (std::uint32_t l = 0; l < layers; ++l) {
      options.windows.push_back(microseconds(random.below(3000)));
    }
  }
  options.deadline =
      random.below(20) == 0 ? Duration(microseconds(random.below(5'000))) : Duration(kLongDeadline);
  if (random.below(3) == 0) options.lookahead_bytes = 1 + random.below(2'000);
  options.store_first_byte = microseconds(random.below(2'000));
  return options;
}

/// Eight streams at once in one world.
void run_round(StreamWorld& world, const WorldOptions& shape, const std::uint64_t& stalls,
               Totals& totals) {
  Random& random = world.random;
  const std::uint64_t stalls_before = stalls;
  const TimePoint start = world.loop.now();
  std::vector<std::unique_ptr<TestRead>> reads;
  std::vector<std::uint32_t> checked;
  for (int i = 0; i < 8; ++i) {
    reads.push_back(world.open(random_read(world, shape.chunks, shape.layers)));
    ASSERT_TRUE(reads.back()->stream) << reads.back()->open_error->to_string();
    checked.push_back(0);
  }
  std::size_t running = reads.size();
  while (running > 0) {
    const bool is_long = world.loop.now() - start > std::chrono::seconds(1);
    world.loop.run_for(microseconds((100 + random.below(400)) * (is_long ? 1000 : 1)));
    if (random.below(200) == 0) {
      const auto chunk = static_cast<std::uint32_t>(random.below(shape.chunks));
      world.republish(chunk, fmt::format("n{}", random.next()), random.next());
    }
    if (random.below(100) == 0) reads[random.below(reads.size())]->stream->cancel();
    running = 0;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (!reads[i]->stream->ended()) ++running;
      if (reads[i]->stream->ready_layers() == checked[i]) continue;
      checked[i] = reads[i]->stream->ready_layers();
      ASSERT_EQ(world.problem(*reads[i]), "");
    }
    ASSERT_LE(world.store.running(), shape.admission.requests_in_flight_max);
    ASSERT_LE(world.store.granted_open(), shape.admission.bytes_in_flight_max);
    ASSERT_LE(world.memory.stats().lent_bytes, shape.memory_bytes);
  }
  ASSERT_TRUE(stalls > stalls_before || world.loop.now() - start < kLongDeadline / 2)
      << "streams wait for each other";
  ASSERT_TRUE(world.loop.run_to_idle());
  for (auto& read : reads) {
    ASSERT_EQ(world.problem(*read), "") << "after the end";
    ++totals.streams;
    const auto failure = read->stream->failure();
    const std::uint32_t ready = read->stream->ready_layers();
    for (std::uint32_t l = 0; l < ready; ++l) {
      totals.bytes_checked += world.source->layout.slice_bytes(l) * read->chunks;
    }
    if (failure) {
      ASSERT_LT(ready, shape.layers);
      ++totals.failures[failure->error.code];
    } else {
      ASSERT_EQ(ready, shape.layers);
      ++totals.whole;
      if (read->stream->stats().rereads > 0) ++totals.whole_mended;
    }
    ASSERT_EQ(read->ended_calls, 1u);
  }
  ASSERT_EQ(world.memory.stats().lent_bytes, 0u);
  ASSERT_EQ(world.admission->usage().streams, 0u);
  ASSERT_EQ(world.loop.timers(), 0u);
}

TEST(RandomFaults, NeverDeliverAWrongByte) {
  const std::uint64_t first_seed = 20'261'130;
  Totals totals;
  std::uint64_t seed = first_seed;
  for (; totals.faults < kFaults; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const WorldOptions shape = random_world(seed, random);
    StreamWorld world(shape);
    std::uint64_t stalls = 0;
    const double fault_rate = 0.02 + 0.3 * random.unit() * random.unit();
    world.store.director = [&](const Get&) {
      Script script{.first_byte = microseconds(random.below(1500)),
                    .piece_time = microseconds(random.below(200)),
                    .piece_bytes = 1 + random.below(6000),
                    .completion = microseconds(random.below(500)),
                    .cancel_time = microseconds(random.below(1000)),
                    .report_progress = random.below(8) != 0};
      if (random.chance(fault_rate)) {
        script.fault = random_fault(random);
        script.fault_at = random.next() >> 1;
        if (script.fault == Fault::kStall) ++stalls;
        const auto other = static_cast<std::uint32_t>(random.below(shape.chunks));
        script.other = world.key(other);
      }
      return script;
    };
    for (int round = 0; round < 20; ++round) {
      SCOPED_TRACE(fmt::format("round {}", round));
      run_round(world, shape, stalls, totals);
      if (HasFatalFailure()) return;
    }
    totals.faults += world.store.faults();
  }
  fmt::print(
      "seeds {} to {}: {} streams, {} faults, {} bytes checked; {} whole, {} of them mended\n",
      first_seed, seed - 1, totals.streams, totals.faults, totals.bytes_checked, totals.whole,
      totals.whole_mended);
  for (const auto& [code, count] : totals.failures) {
    fmt::print("  {}: {}\n", error_code_name(code), count);
  }
  // The run means something only if every way of ending was taken often.
  EXPECT_GT(totals.whole, totals.streams / 10);
  EXPECT_GT(totals.whole_mended, totals.streams / 100);
  for (const auto code :
       {ErrorCode::kCorrupt, ErrorCode::kConflict, ErrorCode::kNotFound, ErrorCode::kUnavailable,
        ErrorCode::kDeadlineExceeded, ErrorCode::kCancelled}) {
    EXPECT_GT(totals.failures[code], 0u) << error_code_name(code);
  }
}

}  // namespace
}  // namespace objectcache::stream
