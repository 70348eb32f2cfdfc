#include "objectcache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cache/cache_impl.h"
#include "cache/testing/fake_store.h"
#include "cache/testing/sample_space.h"

namespace objectcache::cache {
namespace {

using testing::FakeStore, testing::sample_slice, testing::sample_spec, testing::sample_units;
using namespace std::chrono_literals;

TimePoint in(Duration span) { return std::chrono::steady_clock::now() + span; }

/// A read of `chunks` into memory of its own.
struct Reading {
  explicit Reading(const NamespaceSpec& spec_in, std::vector<ChunkKey> keys_in)
      : spec(spec_in), keys(std::move(keys_in)) {
    for (std::uint32_t l = 0; l < spec.layers; ++l) {
      memory.emplace_back(keys.size() * spec.slice_bytes(l), std::byte{0xEE});
    }
  }
  [[nodiscard]] ReadRequest request(Duration patience = 10s) {
    std::vector<Segment> layers;
    for (auto& layer : memory) layers.emplace_back(layer);
    ReadRequest out;
    out.chunks = keys;
    out.destination = Destination::contiguous(std::move(layers));
    out.deadline = in(patience);
    return out;
  }
  [[nodiscard]] bool is_right(std::uint32_t layer) const {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto wanted = sample_slice(spec, keys[i], layer);
      if (std::memcmp(memory[layer].data() + i * wanted.size(), wanted.data(), wanted.size()) !=
          0) {
        return false;
      }
    }
    return true;
  }

  const NamespaceSpec& spec;
  std::vector<ChunkKey> keys;
  std::vector<std::vector<std::byte>> memory;
};

std::vector<ChunkKey> keys_of(const NamespaceSpec& spec, const std::vector<UnitKey>& units) {
  return chunk_keys(units, spec.units_per_chunk());
}

void write_all(const NamespaceSpec& spec, PrefixWriter& writer, const std::vector<ChunkKey>& keys) {
  for (std::uint32_t layer = 0; layer < spec.layers; ++layer) {
    for (std::uint32_t chunk = 0; chunk < keys.size(); ++chunk) {
      if (!writer.wants(chunk)) continue;
      const auto slice = sample_slice(spec, keys[chunk], layer);
      const std::vector<ConstSegment> segments{slice};
      EXPECT_TRUE(writer.write_slice(layer, chunk, segments));
    }
  }
}

WriteSummary write_prefix(CacheNamespace& space, const std::vector<UnitKey>& units,
                          std::uint32_t first_chunk = 0) {
  auto writer = space.open_writer(units, first_chunk);
  EXPECT_TRUE(writer);
  write_all(space.spec(), *writer, keys_of(space.spec(), units));
  auto summary = writer->finish(in(10s));
  EXPECT_TRUE(summary) << summary.error().to_string();
  return summary.value_or(WriteSummary{});
}

void expect_read(CacheNamespace& space, const std::vector<ChunkKey>& keys) {
  Reading reading(space.spec(), keys);
  auto stream = space.open_stream(reading.request());
  ASSERT_TRUE(stream) << stream.error().to_string();
  for (std::uint32_t layer = 0; layer < space.spec().layers; ++layer) {
    const auto ok = stream->wait(layer, in(10s));
    ASSERT_TRUE(ok) << ok.error().to_string();
    EXPECT_TRUE(reading.is_right(layer)) << "layer " << layer;
  }
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "oc-cache-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string url() const { return "file:" + path_; }
  /// The files that hold chunks.
  [[nodiscard]] std::vector<std::filesystem::path> objects() const {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file() &&
          entry.path().filename().string().find("of1") != std::string::npos) {
        out.push_back(entry.path());
      }
    }
    return out;
  }

 private:
  std::string path_;
};

class CacheTest : public ::testing::TestWithParam<ObjectLayout> {
 protected:
  NamespaceSpec spec_ = sample_spec(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Layouts, CacheTest,
                         ::testing::Values(ObjectLayout::kChunk, ObjectLayout::kLayer),
                         [](const auto& param) {
                           return param.param == ObjectLayout::kChunk ? "Chunk" : "Layer";
                         });

TEST_P(CacheTest, WritesMatchesProvesAndReads) {
  for (const char* url : {"memory:", ""}) {
    const TemporaryFolder folder;
    auto cache = Cache::open(*url == 0 ? folder.url() : url);
    ASSERT_TRUE(cache) << cache.error().to_string();
    auto space = (*cache)->open_namespace(spec_);
    ASSERT_TRUE(space);
    const auto units = sample_units(spec_, 20);
    const auto keys = keys_of(spec_, units);
    EXPECT_EQ(space->match(keys, in(5s))->chunks, 0U);
    EXPECT_EQ(space->prove(keys, in(5s))->chunks, 0U);
    const WriteSummary written = write_prefix(*space, units);
    EXPECT_EQ(written.published, 20U);
    EXPECT_EQ(space->match(keys, in(5s))->chunks, 20U);
    EXPECT_EQ(space->prove(keys, in(5s))->chunks, 20U);
    expect_read(*space, keys);
    const CacheStats stats = (*cache)->stats();
    EXPECT_EQ(stats.chunks_published, 20U);
    EXPECT_EQ(stats.streams_opened, 1U);
    EXPECT_EQ(stats.streams_failed, 0U);
    EXPECT_GT(stats.bytes_read, 20 * spec_.slice_bytes(0));
    EXPECT_EQ(stats.layer_wait_total.size(), spec_.layers);
    EXPECT_EQ(stats.requests_put, 20U * (GetParam() == ObjectLayout::kChunk ? 1 : 3) + 1);
    EXPECT_TRUE(stats.errors.empty());
  }
}

TEST_P(CacheTest, FindsItsChunksAgainAfterARestart) {
  const TemporaryFolder folder;
  const auto units = sample_units(spec_, 5);
  for (int start = 0; start < 2; ++start) {
    auto cache = Cache::open(folder.url());
    ASSERT_TRUE(cache);
    auto space = (*cache)->open_namespace(spec_);
    if (start == 0) write_prefix(*space, units);
    EXPECT_EQ(space->match(keys_of(spec_, units), in(5s))->chunks, 5U);
    expect_read(*space, keys_of(spec_, units));
  }
}

TEST_P(CacheTest, WhatDiffersInAnythingIsAMiss) {
  const TemporaryFolder folder;
  {
    auto cache = Cache::open(folder.url());
    auto space = (*cache)->open_namespace(spec_);
    write_prefix(*space, sample_units(spec_, 5));
  }
  const auto matched = [&](const NamespaceSpec& spec, Shard shard, std::string tenant,
                           std::string_view salt) {
    CacheOptions options;
    options.tenant = std::move(tenant);
    auto cache = Cache::open(folder.url(), std::move(options));
    auto space = (*cache)->open_namespace(spec, shard);
    std::vector<TokenId> tokens(5 * spec.chunk_tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i);
    tokens[0] = 1;
    return space->match(keys_of(spec, *unit_keys(spec, salt, tokens)), in(5s))->chunks;
  };
  EXPECT_EQ(matched(spec_, {}, "default", "salt"), 5U);
  EXPECT_EQ(matched(spec_, {}, "default", ""), 0U);
  EXPECT_EQ(matched(spec_, {}, "default", "other"), 0U);
  EXPECT_EQ(matched(spec_, {}, "other", "salt"), 0U);
  EXPECT_EQ(matched(spec_, {.tp_rank = 0, .tp_size = 2}, "default", "salt"), 0U);
  EXPECT_EQ(matched(spec_, {.tp_rank = 1, .tp_size = 2}, "default", "salt"), 0U);
  const auto with = [&](auto&& change) {
    NamespaceSpec spec = spec_;
    change(spec);
    return matched(spec, {}, "default", "salt");
  };
  EXPECT_EQ(with([](NamespaceSpec& s) { s.kv_dtype = "fp8_e4m3"; }), 0U);
  EXPECT_EQ(with([](NamespaceSpec& s) { s.model_fingerprint = "sha256:01"; }), 0U);
  EXPECT_EQ(with([](NamespaceSpec& s) { s.adapter_id = "lora"; }), 0U);
  EXPECT_EQ(with([](NamespaceSpec& s) { s.adapter_revision = "2"; }), 0U);
  EXPECT_EQ(with([](NamespaceSpec& s) { s.kv_scales = "inline"; }), 0U);
  EXPECT_EQ(with([](NamespaceSpec& s) { s.attention_backend = "flash"; }), 0U);
  EXPECT_EQ(with([](NamespaceSpec& s) { s.position_encoding = "rope:theta=500000"; }), 0U);
}

TEST_P(CacheTest, AChunkDeletedBehindItsBackEndsTheReadAndShortensTheNextMatch) {
  const TemporaryFolder folder;
  auto cache = Cache::open(folder.url());
  auto space = (*cache)->open_namespace(spec_);
  const auto units = sample_units(spec_, 60);
  const auto keys = keys_of(spec_, units);
  write_prefix(*space, units);
  ASSERT_EQ(space->match(keys, in(5s))->chunks, 60U);
  for (const auto& path : folder.objects()) {
    if (path.string().find(keys[30].hex()) != std::string::npos) std::filesystem::remove(path);
  }
  ASSERT_EQ(space->match(keys, in(5s))->chunks, 60U) << "remembered";
  Reading reading(spec_, keys);
  auto stream = space->open_stream(reading.request());
  ASSERT_TRUE(stream);
  const auto ended = stream->wait(spec_.layers - 1, in(10s));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kNotFound);
  EXPECT_NE(ended.error().to_string().find(keys[30].hex()), std::string::npos);
  ASSERT_TRUE(stream->cancel_and_wait(in(10s)));
  EXPECT_EQ(stream->failure()->chunk, 30U);
  EXPECT_EQ(space->match(keys, in(5s))->chunks, 30U);
  expect_read(*space, {keys.begin(), keys.begin() + 30});
  // The next writer fills the hole, and the prefix is whole again.
  const WriteSummary mended = write_prefix(*space, units, 30);
  EXPECT_EQ(mended.published, 1U);
  EXPECT_EQ(mended.already_present, 29U);
  EXPECT_EQ(space->match(keys, in(5s))->chunks, 60U);
  expect_read(*space, keys);
}

void flip_a_byte(const std::filesystem::path& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(at);
  file.put(byte);
}

TEST_P(CacheTest, ABadObjectIsNeverDeliveredAndGivesWayToAGoodOne) {
  for (const bool may_delete : {true, false}) {
    const TemporaryFolder folder;
    CacheOptions options;
    options.delete_bad_objects = may_delete;
    auto cache = Cache::open(folder.url(), options);
    auto space = (*cache)->open_namespace(spec_);
    const auto units = sample_units(spec_, 3);
    const auto keys = keys_of(spec_, units);
    write_prefix(*space, units);
    for (const auto& path : folder.objects()) {
      const bool last_object = GetParam() == ObjectLayout::kChunk ||
                               path.filename().string().find(".l") != std::string::npos;
      if (path.string().find(keys[1].hex()) == std::string::npos || !last_object) continue;
      flip_a_byte(path, static_cast<std::streamoff>(std::filesystem::file_size(path)) - 5);
    }
    Reading reading(spec_, keys);
    {
      auto stream = space->open_stream(reading.request());
      const auto ended = stream->wait(spec_.layers - 1, in(10s));
      ASSERT_FALSE(ended);
      EXPECT_EQ(ended.error().code, ErrorCode::kCorrupt) << ended.error().to_string();
      EXPECT_EQ(stream->failure()->chunk, 1U);
      for (std::uint32_t layer = 0; layer < stream->ready_layers(); ++layer) {
        EXPECT_TRUE(reading.is_right(layer));
      }
    }
    EXPECT_EQ((*cache)->stats().corrupt_found, 1U);
    EXPECT_EQ((*cache)->stats().errors.at("corrupt"), 1U);
    EXPECT_EQ(space->match(keys, in(5s))->chunks, 1U);
    const WriteSummary mended = write_prefix(*space, units, 1);
    EXPECT_EQ(mended.published, 1U);
    EXPECT_EQ(mended.already_present, 1U);
    expect_read(*space, keys);
  }
}

TEST_P(CacheTest, ProofFindsABadHeader) {
  const TemporaryFolder folder;
  auto cache = Cache::open(folder.url());
  auto space = (*cache)->open_namespace(spec_);
  const auto units = sample_units(spec_, 5);
  const auto keys = keys_of(spec_, units);
  write_prefix(*space, units);
  for (const auto& path : folder.objects()) {
    if (path.string().find(keys[3].hex()) != std::string::npos) flip_a_byte(path, 50);
  }
  EXPECT_EQ(space->prove(keys, in(5s))->chunks, 3U);
  EXPECT_EQ(space->match(keys, in(5s))->chunks, 3U);
}

TEST_P(CacheTest, ManyThreadsReadAndWriteOverlappingPrefixes) {
  CacheOptions options;
  options.reactor_threads = 2;
  auto cache = Cache::open("memory:", options);
  auto space = (*cache)->open_namespace(spec_);
  std::atomic<int> reads{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t + 1);
      for (int round = 0; round < 25; ++round) {
        const auto units = sample_units(spec_, 1 + static_cast<std::uint32_t>(random.below(24)),
                                        static_cast<TokenId>(random.below(3)));
        auto keys = keys_of(spec_, units);
        const std::uint32_t found = space->match(keys, in(10s))->chunks;
        write_prefix(*space, units, found);
        if (found == 0) continue;
        keys.resize(found);
        Reading reading(spec_, keys);
        auto stream = space->open_stream(reading.request());
        if (const auto ok = stream->wait(spec_.layers - 1, in(10s)); !ok) {
          // A match is a hint: a writer may have published a later chunk before an earlier one.
          EXPECT_EQ(ok.error().code, ErrorCode::kNotFound) << ok.error().to_string();
          continue;
        }
        for (std::uint32_t layer = 0; layer < spec_.layers; ++layer) {
          if (!reading.is_right(layer)) ++wrong;
        }
        ++reads;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(reads, 20);
  EXPECT_EQ((*cache)->stats().chunks_dropped, 0U);
}

// ---------------------------------------------------------------- stores in trouble, and the end

struct OpenOnFake {
  FakeStore* store = nullptr;
  std::unique_ptr<Cache> cache;
};
OpenOnFake open_on_fake(CacheOptions options = {}) {
  auto store = std::make_unique<FakeStore>();
  OpenOnFake out{.store = store.get(), .cache = nullptr};
  auto cache = Cache::Impl::open(
      std::move(options),
      [&]() -> Result<std::unique_ptr<store::ObjectStore>> { return std::move(store); });
  EXPECT_TRUE(cache);
  out.cache = std::move(*cache);
  return out;
}

TEST(CacheFaults, AStoreThatHangsBlocksNeitherWritersNorTheEnd) {
  auto [store, cache] = open_on_fake();
  store->fate = [](const FakeStore::Call&) { return FakeStore::Fate::kHang; };
  const auto spec = sample_spec();
  auto space = cache->open_namespace(spec);
  const auto units = sample_units(spec, 50);
  const auto keys = keys_of(spec, units);
  auto writer = space->open_writer(units);
  const auto before = std::chrono::steady_clock::now();
  write_all(spec, *writer, keys);
  const auto summary = writer->finish(in(20ms));
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(space->match(keys, in(20ms))->chunks, 0U);
  EXPECT_EQ(space->prove(keys, in(20ms))->chunks, 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
}

TEST(CacheFaults, AStoreThatFailsGivesErrorsToReadersAndCountsToWriters) {
  auto [store, cache] = open_on_fake();
  store->fate = [](const FakeStore::Call&) { return FakeStore::Fate::kFail; };
  const auto spec = sample_spec();
  auto space = cache->open_namespace(spec);
  const auto units = sample_units(spec, 10);
  const auto keys = keys_of(spec, units);
  EXPECT_EQ(space->match(keys, in(1s)).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(space->prove(keys, in(1s)).error().code, ErrorCode::kUnavailable);
  auto writer = space->open_writer(units);
  write_all(spec, *writer, keys);
  const auto summary = writer->finish(in(10s));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->published, 0U);
  EXPECT_EQ(summary->failed + summary->dropped, 10U);
  EXPECT_GE(summary->failed, 1U);
  EXPECT_GT(cache->stats().errors.at("unavailable"), 2U);
}

TEST(CacheFaults, TheEndOfTheCacheEndsAllThatRuns) {
  auto [store, cache] = open_on_fake();
  const auto spec = sample_spec();
  std::optional<CacheNamespace> space(std::move(*cache->open_namespace(spec)));
  const auto units = sample_units(spec, 10);
  const auto keys = keys_of(spec, units);
  write_prefix(*space, units);
  std::atomic<bool> hang{true};
  store->fate = [&](const FakeStore::Call&) {
    return hang ? FakeStore::Fate::kHang : FakeStore::Fate::kServe;
  };
  Reading reading(spec, keys);
  std::optional<LayerStream> stream(std::move(*space->open_stream(reading.request(1h))));
  const auto other_units = sample_units(spec, 10, 99);
  std::optional<PrefixWriter> writer(std::move(*space->open_writer(other_units)));
  write_all(spec, *writer, keys_of(spec, other_units));
  space->forget(keys);
  std::optional<Result<Match>> match;
  std::thread waiter([&] { match.emplace(space->match(keys, in(1h))); });
  std::this_thread::sleep_for(20ms);
  cache.reset();
  waiter.join();
  ASSERT_TRUE(match && !*match);
  EXPECT_EQ(match->error().code, ErrorCode::kCancelled);

  // Handles that outlived it: everything has ended, nothing hangs, nothing dangles.
  EXPECT_TRUE(stream->ended());
  EXPECT_EQ(stream->failure()->error.code, ErrorCode::kCancelled);
  EXPECT_FALSE(stream->wait(0, in(1h)));
  EXPECT_TRUE(stream->cancel_and_wait(in(1s)));
  const auto summary = writer->finish(in(1s));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->published, 0U);
  EXPECT_EQ(summary->failed + summary->dropped, 10U);
  EXPECT_EQ(space->match(keys, in(1s)).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(space->prove(keys, in(1s)).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(space->open_stream(reading.request()).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(space->open_writer(units).error().code, ErrorCode::kCancelled);
  stream.reset();
  writer.reset();
  space.reset();
}

TEST(CacheFaults, AStreamThatEndedMayOutliveTheCache) {
  const auto spec = sample_spec();
  auto cache = *Cache::open("memory:");
  auto space = cache->open_namespace(spec);
  const auto units = sample_units(spec, 2);
  write_prefix(*space, units);
  Reading reading(spec, keys_of(spec, units));
  auto stream = space->open_stream(reading.request());
  ASSERT_TRUE(stream->wait(spec.layers - 1, in(10s)));
  cache.reset();
  EXPECT_EQ(stream->ready_layers(), spec.layers);
}

TEST(CacheFaults, NothingThatWaitsMayRunOnAThreadOfTheCache) {
  auto cache = *Cache::open("memory:");
  const auto spec = sample_spec();
  auto space = cache->open_namespace(spec);
  const auto units = sample_units(spec, 2);
  const auto keys = keys_of(spec, units);
  auto writer = space->open_writer(units);
  const auto codes = cache->impl().core()->run<std::vector<ErrorCode>>(
      "test", in(5s), [&](CacheCore::Lane& lane, store::ObjectStore& store, auto done) {
        std::vector<ErrorCode> out{space->match(keys, in(1s)).error().code,
                                   space->prove(keys, in(1s)).error().code,
                                   writer->finish(in(1s)).error().code};
        return store.head(*lane.loop, {"x"}, in(1s),
                          [out, done = std::move(done)](const auto&) mutable { done(out); });
      });
  ASSERT_TRUE(codes);
  EXPECT_THAT(*codes, ::testing::Each(ErrorCode::kInvalidArgument));
}

TEST(CacheFaults, RefusesWhatDoesNotFit) {
  const auto code = [](const auto& result) { return result.error().code; };
  EXPECT_EQ(code(Cache::open("nonsense:")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(Cache::open("memory:?nonsense=1")), ErrorCode::kInvalidArgument);
  CacheOptions no_tenant;
  no_tenant.tenant = "../other";
  const auto refused = Cache::open("memory:", no_tenant);
  EXPECT_EQ(code(refused), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().key, "tenant");
  CacheOptions long_ttl;
  long_ttl.negative_cache_ttl = 1001ms;
  EXPECT_EQ(Cache::open("memory:", long_ttl).error().key, "negative_cache_ttl");
  CacheOptions no_writes;
  no_writes.writes_in_flight_max = 0;
  EXPECT_EQ(Cache::open("memory:", no_writes).error().key, "writes_in_flight_max");
  CacheOptions no_threads;
  no_threads.reactor_threads = 0;
  EXPECT_EQ(Cache::open("memory:", no_threads).error().key, "reactor_threads");

  auto cache = *Cache::open("memory:");
  NamespaceSpec incomplete = sample_spec();
  incomplete.kv_dtype.clear();
  EXPECT_EQ(code(cache->open_namespace(incomplete)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(cache->open_namespace(sample_spec(), {.tp_rank = 2, .tp_size = 2})),
            ErrorCode::kInvalidArgument);
  const auto spec = sample_spec();
  auto space = cache->open_namespace(spec);
  const auto keys = keys_of(spec, sample_units(spec, 3));
  Reading reading(spec, keys);
  auto request = reading.request();
  request.chunks.clear();
  EXPECT_EQ(code(space->open_stream(std::move(request))), ErrorCode::kInvalidArgument);
  Reading small(spec, {keys.begin(), keys.begin() + 2});
  request = small.request();
  request.chunks = keys;
  EXPECT_EQ(code(space->open_stream(std::move(request))), ErrorCode::kInvalidArgument);
  request = reading.request();
  request.last_chunk_tokens = spec.chunk_tokens + 4;
  EXPECT_EQ(code(space->open_stream(std::move(request))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(cache->stats().streams_opened, 0U);
}

TEST(CacheFaults, KeepsToTheNumberOfStreams) {
  CacheOptions options;
  options.streams_max = 3;
  auto [store, cache] = open_on_fake(options);
  store->fate = [](const FakeStore::Call&) { return FakeStore::Fate::kHang; };
  const auto spec = sample_spec();
  auto space = cache->open_namespace(spec);
  const auto keys = keys_of(spec, sample_units(spec, 2));
  std::vector<std::unique_ptr<Reading>> readings;
  std::vector<LayerStream> streams;
  std::optional<Error> refused;
  for (int i = 0; i < 10 && !refused; ++i) {
    readings.push_back(std::make_unique<Reading>(spec, keys));
    auto stream = space->open_stream(readings.back()->request());
    if (stream) {
      streams.push_back(std::move(*stream));
    } else {
      refused = stream.error();
    }
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(streams.size(), 3U);
}

TEST(CacheFaults, SharesOneNamespaceAndItsMemoryBetweenHandles) {
  auto [store, cache] = open_on_fake();
  const auto spec = sample_spec();
  const auto units = sample_units(spec, 10);
  const auto keys = keys_of(spec, units);
  {
    auto space = cache->open_namespace(spec);
    write_prefix(*space, units);
  }
  auto again = cache->open_namespace(spec);
  const Match found = *again->match(keys, in(1s));
  EXPECT_EQ(found.chunks, 10U);
  EXPECT_EQ(found.probes, 0U) << "what was written is known to be there";
  auto other_shard = cache->open_namespace(spec, {.tp_rank = 0, .tp_size = 2});
  EXPECT_EQ(other_shard->match(keys, in(1s))->chunks, 0U);
}

}  // namespace
}  // namespace objectcache::cache
