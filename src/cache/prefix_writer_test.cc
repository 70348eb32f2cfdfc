#include "cache/prefix_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/fake_event_loop.h"
#include "base/fake_wall_clock.h"
#include "cache/testing/fake_store.h"
#include "cache/testing/sample_space.h"
#include "digest/crc32c.h"
#include "format/chunk_header.h"

namespace objectcache::cache {
namespace {

using testing::FakeStore;
using namespace std::chrono_literals;
using Impl = PrefixWriter::Impl;

class WriterTest : public ::testing::TestWithParam<ObjectLayout> {
 protected:
  WriterTest() { make_publisher(4); }
  ~WriterTest() override {
    publisher_->shut_down();
    loop_.run_to_idle();
  }

  void make_publisher(std::uint32_t writes_in_flight_max) {
    publisher_ = std::make_unique<Publisher>(
        Publisher::Parts{.loops = {&loop_},
                         .store = store_,
                         .wall_clock = wall_clock_,
                         .presence = presence_,
                         .bad_objects = bad_objects_},
        Publisher::Options{.writes_in_flight_max = writes_in_flight_max});
  }
  [[nodiscard]] std::uint64_t buffer_bytes() const {
    return space_->layout.header_bytes() + space_->layout.payload_bytes();
  }
  std::shared_ptr<Impl> open(std::uint32_t chunks, std::uint32_t first_chunk = 0,
                             TokenId prompt = 1) {
    units_ = testing::sample_units(space_->spec, chunks, prompt);
    keys_ = chunk_keys(units_, space_->layout.units());
    return std::make_shared<Impl>(Impl::Parts{.space = space_,
                                              .pool = pool_,
                                              .publisher = *publisher_,
                                              .counters = counters_,
                                              .keep_alive = nullptr},
                                  units_, first_chunk);
  }
  Result<void> write(Impl& writer, std::uint32_t layer, std::uint32_t chunk) {
    const auto slice = testing::sample_slice(space_->spec, keys_[chunk], layer);
    const std::vector<ConstSegment> segments{slice};
    return writer.write(layer, chunk, 0, space_->layout.units(), segments);
  }
  void write_all(Impl& writer) {
    for (std::uint32_t layer = 0; layer < space_->layout.layers(); ++layer) {
      for (std::uint32_t chunk = 0; chunk < keys_.size(); ++chunk) {
        ASSERT_TRUE(write(writer, layer, chunk));
      }
    }
  }
  /// The stored chunk is what a reader accepts, byte for byte.
  void expect_stored(std::uint32_t chunk) {
    const auto objects = store_.objects();
    std::string all;
    for (std::uint32_t i = 0; i < space_->layout.object_count(); ++i) {
      const auto at = objects.find(space_->object(keys_[chunk], i).text);
      ASSERT_NE(at, objects.end()) << "chunk " << chunk << " object " << i;
      EXPECT_EQ(at->second.size(), space_->layout.object_bytes(i));
      all += at->second;
    }
    const ConstSegment bytes(reinterpret_cast<const std::byte*>(all.data()), all.size());
    const auto header =
        format::decode_header(space_->layout, bytes,
                              {.name = space_->digest,
                               .shard = space_->shard,
                               .key = keys_[chunk],
                               .parent = chunk == 0 ? ChunkKey{} : keys_[chunk - 1]});
    ASSERT_TRUE(header) << header.error().to_string();
    std::size_t at = space_->layout.header_bytes();
    for (std::uint32_t layer = 0; layer < space_->layout.layers(); ++layer) {
      const auto slice = testing::sample_slice(space_->spec, keys_[chunk], layer);
      EXPECT_EQ(std::memcmp(all.data() + at, slice.data(), slice.size()), 0);
      for (std::uint32_t unit = 0; unit < space_->layout.units(); ++unit) {
        const std::size_t size = space_->layout.unit_bytes(layer);
        EXPECT_TRUE(
            format::verify_unit(space_->layout, *header, layer, unit, bytes.subspan(at, size)));
        at += size;
      }
    }
  }
  [[nodiscard]] std::size_t puts_of_chunks() const {
    std::size_t n = 0;
    for (const auto& call : store_.calls()) {
      n += call.verb == FakeStore::Verb::kPut && !call.key.ends_with("namespace.json") ? 1 : 0;
    }
    return n;
  }

  FakeEventLoop loop_;
  FakeStore store_;
  FakeWallClock wall_clock_{std::chrono::system_clock::time_point(std::chrono::days(20000))};
  std::shared_ptr<const NamespaceState> space_ = testing::sample_space(GetParam());
  std::shared_ptr<ChunkBufferPool> pool_ = ChunkBufferPool::create(1 << 20);
  PresenceCache presence_{{}};
  ChunkMarks bad_objects_{100, ChunkMarks::kBadTtl};
  Counters counters_;
  std::unique_ptr<Publisher> publisher_;
  std::vector<UnitKey> units_;
  std::vector<ChunkKey> keys_;
};

INSTANTIATE_TEST_SUITE_P(Layouts, WriterTest,
                         ::testing::Values(ObjectLayout::kChunk, ObjectLayout::kLayer),
                         [](const auto& param) {
                           return param.param == ObjectLayout::kChunk ? "Chunk" : "Layer";
                         });

TEST_P(WriterTest, PublishesWhatAReaderAccepts) {
  const auto writer = open(5);
  write_all(*writer);
  loop_.run_to_idle();
  const WriteSummary summary = writer->summary();
  EXPECT_EQ(summary.published, 5U);
  EXPECT_EQ(summary.bytes_published, 5 * buffer_bytes());
  EXPECT_TRUE(summary.first_error.empty());
  for (std::uint32_t i = 0; i < 5; ++i) expect_stored(i);
  const auto objects = store_.objects();
  EXPECT_EQ(objects.size(), 5U * space_->layout.object_count() + 1);
  EXPECT_EQ(objects.at(space_->names.namespace_json()), space_->canonical_json);
  EXPECT_EQ(pool_->bytes_in_use(), 0U);
  EXPECT_EQ(counters_.chunks_published, 5U);
}

TEST_P(WriterTest, TakesSlicesInAnyOrderAndByUnitAndInPieces) {
  const auto writer = open(2);
  for (std::uint32_t chunk = 2; chunk-- > 0;) {
    for (std::uint32_t layer = space_->layout.layers(); layer-- > 0;) {
      const auto slice = testing::sample_slice(space_->spec, keys_[chunk], layer);
      const std::size_t size = space_->layout.unit_bytes(layer);
      for (std::uint32_t unit = space_->layout.units(); unit-- > 0;) {
        const ConstSegment all = ConstSegment(slice).subspan(unit * size, size);
        const std::vector<ConstSegment> pieces{
            all.subspan(0, 3), {}, all.subspan(3, 70), all.subspan(73)};
        ASSERT_TRUE(writer->write(layer, chunk, unit, 1, pieces));
      }
    }
  }
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().published, 2U);
  expect_stored(0);
  expect_stored(1);
}

TEST_P(WriterTest, TheHeaderComesLast) {
  const auto writer = open(1);
  write_all(*writer);
  loop_.run_to_idle();
  EXPECT_EQ(store_.calls().back().key, space_->object(keys_[0], 0).text);
}

TEST_P(WriterTest, RefusesWhatDoesNotFit) {
  const auto writer = open(2);
  const std::vector<std::byte> memory(1 << 16);
  const std::vector<ConstSegment> right{ConstSegment(memory).subspan(0, 1024)};
  const std::vector<ConstSegment> half{ConstSegment(memory).subspan(0, 512)};
  const auto code = [](const Result<void>& result) {
    return result ? std::optional<ErrorCode>() : result.error().code;
  };
  const auto bad = std::optional(ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(writer->write(3, 0, 0, 2, right)), bad);
  EXPECT_EQ(code(writer->write(0, 2, 0, 2, right)), bad);
  EXPECT_EQ(code(writer->write(0, 0, 2, 1, half)), bad);
  EXPECT_EQ(code(writer->write(0, 0, 1, 2, right)), bad);
  EXPECT_EQ(code(writer->write(0, 0, 0, 2, half)), bad);
  EXPECT_EQ(code(writer->write(0, 0, 0, 2, {})), bad);
  EXPECT_EQ(code(writer->write(0, 0, 1, 1, half)), std::nullopt);
  EXPECT_EQ(code(writer->write(0, 0, 0, 2, right)), bad) << "half of it was written before";
  EXPECT_EQ(code(writer->write(0, 0, 1, 1, half)), bad);
  EXPECT_EQ(code(writer->write(0, 0, 0, 1, half)), std::nullopt)
      << "the refused call must not have taken it";
  writer->abandon(false);
  EXPECT_EQ(code(writer->write(0, 1, 0, 2, right)), bad);
}

TEST_P(WriterTest, IncompleteChunksAreAbandoned) {
  const auto writer = open(3);
  for (std::uint32_t layer = 0; layer < 3; ++layer) ASSERT_TRUE(write(*writer, layer, 0));
  ASSERT_TRUE(write(*writer, 0, 1));
  writer->abandon(false);
  loop_.run_to_idle();
  const WriteSummary summary = writer->summary();
  EXPECT_EQ(summary.published, 1U);
  EXPECT_EQ(summary.abandoned, 2U);
  EXPECT_EQ(pool_->bytes_in_use(), 0U);
}

TEST_P(WriterTest, AbandonDropsCompleteChunksThatAreNotBeingSent) {
  make_publisher(1);
  const auto writer = open(4);
  write_all(*writer);
  writer->abandon(true);
  EXPECT_FALSE(writer->wants(3));
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().published, 1U);
  EXPECT_EQ(writer->summary().abandoned, 3U);
  EXPECT_EQ(pool_->bytes_in_use(), 0U);
  EXPECT_EQ(publisher_->queued(), 0U);
}

TEST_P(WriterTest, LeavesOutTheTailThatFillsNoChunkAndWhatComesBeforeTheFirst) {
  const auto writer = open(3, 1);
  units_.pop_back();
  EXPECT_FALSE(writer->wants(0));
  EXPECT_TRUE(writer->wants(1));
  EXPECT_FALSE(writer->wants(3));
  write_all(*writer);
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().published, 2U);
  expect_stored(1);
  expect_stored(2);

  const Impl short_one(Impl::Parts{.space = space_,
                                   .pool = pool_,
                                   .publisher = *publisher_,
                                   .counters = counters_,
                                   .keep_alive = nullptr},
                       units_, 0);
  EXPECT_EQ(short_one.summary().abandoned, 0U);
}

TEST_P(WriterTest, SkipsWhatIsKnownToBeStored) {
  const auto first = open(3);
  write_all(*first);
  loop_.run_to_idle();
  const std::size_t puts = puts_of_chunks();
  const auto second = open(3);
  EXPECT_FALSE(second->wants(0));
  write_all(*second);
  loop_.run_to_idle();
  EXPECT_EQ(second->summary().already_present, 3U);
  EXPECT_EQ(puts_of_chunks(), puts);
  EXPECT_EQ(counters_.chunks_already_present, 3U);
}

TEST_P(WriterTest, FindsOutOnPublishingThatAnotherProcessWasFaster) {
  const auto first = open(3);
  write_all(*first);
  loop_.run_to_idle();
  for (const ChunkKey& key : keys_) presence_.forget(space_->id(key));
  const auto before = store_.objects();
  const auto second = open(3);
  EXPECT_TRUE(second->wants(0));
  write_all(*second);
  loop_.run_to_idle();
  EXPECT_EQ(second->summary().already_present, 3U);
  EXPECT_EQ(second->summary().bytes_published, 0U);
  EXPECT_EQ(store_.objects(), before);
}

TEST_P(WriterTest, TwoWritersOfOnePrefixSendItOnce) {
  store_.latency = 1ms;
  const auto first = open(3);
  write_all(*first);
  const auto second = open(3);
  write_all(*second);
  loop_.run_to_idle();
  EXPECT_EQ(first->summary().published, 3U);
  EXPECT_EQ(second->summary().already_present, 3U);
  EXPECT_EQ(puts_of_chunks(), 3U * space_->layout.object_count());
}

TEST_P(WriterTest, WhereTheFirstWriterFailsTheSecondTries) {
  store_.latency = 1ms;
  int failures = 1;
  store_.fate = [&](const FakeStore::Call& call) {
    const bool fails = call.verb == FakeStore::Verb::kPut &&
                       !call.key.ends_with("namespace.json") && failures-- > 0;
    return fails ? FakeStore::Fate::kFail : FakeStore::Fate::kServe;
  };
  const auto first = open(1);
  write_all(*first);
  const auto second = open(1);
  write_all(*second);
  loop_.run_to_idle();
  EXPECT_EQ(first->summary().failed, 1U);
  EXPECT_EQ(second->summary().published, 1U);
  expect_stored(0);
}

TEST_P(WriterTest, OverloadDropsFromTheTail) {
  pool_ = ChunkBufferPool::create(3 * buffer_bytes());
  const auto writer = open(10);
  write_all(*writer);
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().published, 3U);
  EXPECT_EQ(writer->summary().dropped, 7U);
  EXPECT_EQ(counters_.chunks_dropped, 7U);
  for (std::uint32_t i = 0; i < 3; ++i) expect_stored(i);
  EXPECT_EQ(store_.objects().size(), 3U * space_->layout.object_count() + 1);
  EXPECT_FALSE(writer->wants(3));
}

TEST_P(WriterTest, OverloadTakesFromTheTailWhatTheHeadNeeds) {
  pool_ = ChunkBufferPool::create(3 * buffer_bytes());
  const auto writer = open(10);
  for (std::uint32_t chunk = 10; chunk-- > 0;) ASSERT_TRUE(write(*writer, 0, chunk));
  for (std::uint32_t layer = 1; layer < 3; ++layer) {
    for (std::uint32_t chunk = 0; chunk < 10; ++chunk) ASSERT_TRUE(write(*writer, layer, chunk));
  }
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().published, 3U);
  EXPECT_EQ(writer->summary().dropped, 7U);
  for (std::uint32_t i = 0; i < 3; ++i) expect_stored(i);
}

TEST_P(WriterTest, AWriterWithoutAnyMemoryDropsAll) {
  pool_ = ChunkBufferPool::create(buffer_bytes() - 1);
  const auto writer = open(10);
  write_all(*writer);
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().dropped, 10U);
  EXPECT_TRUE(store_.calls().empty());
}

TEST_P(WriterTest, AStoreThatHangsHoldsUpNobody) {
  store_.fate = [](const FakeStore::Call&) { return FakeStore::Fate::kHang; };
  pool_ = ChunkBufferPool::create(8 * buffer_bytes());
  const auto writer = open(8);
  write_all(*writer);
  loop_.run_ready();
  const auto other = open(4, 0, 77);
  write_all(*other);
  EXPECT_EQ(other->summary().dropped, 4U) << "the memory is all taken";
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().published, 0U);
  EXPECT_EQ(writer->summary().failed + writer->summary().dropped, 8U);
  ASSERT_EQ(writer->summary().first_error.size(), 1U);
  EXPECT_EQ(writer->summary().first_error[0].code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(pool_->bytes_in_use(), 0U);
}

TEST_P(WriterTest, AFailureDropsWhatComesBehindIt) {
  make_publisher(1);
  const auto writer = open(6);
  const std::string second = space_->object(keys_[2], 0).text;
  store_.fate = [&](const FakeStore::Call& call) {
    return call.verb == FakeStore::Verb::kPut && call.key == second ? FakeStore::Fate::kDeny
                                                                    : FakeStore::Fate::kServe;
  };
  write_all(*writer);
  loop_.run_to_idle();
  const WriteSummary summary = writer->summary();
  EXPECT_EQ(summary.published, 2U);
  EXPECT_EQ(summary.failed, 1U);
  EXPECT_EQ(summary.dropped, 3U);
  ASSERT_EQ(summary.first_error.size(), 1U);
  EXPECT_EQ(summary.first_error[0].code, ErrorCode::kPermissionDenied);
}

TEST_P(WriterTest, KeepsToTheNumberOfWritesInFlight) {
  make_publisher(2);
  store_.latency = 1ms;
  const auto writer = open(10);
  write_all(*writer);
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().published, 10U);
  EXPECT_LE(store_.in_flight_max(), 2U);
}

TEST_P(WriterTest, ReplacesWhatWasSeenBad) {
  const auto first = open(2);
  store_.set(space_->object(keys_[0], 0).text, "garbage");
  presence_.remember(space_->id(keys_[0]), true, loop_.now());
  presence_.forget(space_->id(keys_[0]));
  bad_objects_.add(space_->id(keys_[0]), loop_.now());
  write_all(*first);
  loop_.run_to_idle();
  EXPECT_EQ(first->summary().published, 2U);
  expect_stored(0);
  EXPECT_EQ(bad_objects_.size(), 0U);
}

TEST_P(WriterTest, LayerObjectsThatADeadWriterLeftAreReplacedWithTheirHeader) {
  space_ = testing::sample_space(ObjectLayout::kLayer);
  const auto writer = open(1);
  store_.set(space_->object(keys_[0], 2).text, "rounded differently");
  write_all(*writer);
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().published, 1U);
  expect_stored(0);
}

TEST_P(WriterTest, TheDescriptionIsTriedAgainAndNeverFailsAChunk) {
  store_.fate = [](const FakeStore::Call& call) {
    return call.key.ends_with("namespace.json") ? FakeStore::Fate::kFail : FakeStore::Fate::kServe;
  };
  const auto first = open(1);
  write_all(*first);
  loop_.run_to_idle();
  EXPECT_EQ(first->summary().published, 1U);
  store_.fate = [](const FakeStore::Call&) { return FakeStore::Fate::kServe; };
  const auto second = open(1, 0, 2);
  write_all(*second);
  loop_.run_to_idle();
  EXPECT_TRUE(store_.objects().contains(space_->names.namespace_json()));
}

TEST_P(WriterTest, ShutDownEndsAllWithoutLeaks) {
  make_publisher(2);
  store_.fate = [](const FakeStore::Call&) { return FakeStore::Fate::kHang; };
  const auto writer = open(6);
  write_all(*writer);
  const auto same = open(6);
  write_all(*same);
  loop_.run_ready();
  publisher_->shut_down();
  EXPECT_FALSE(publisher_->wait_idle(TimePoint{}));
  loop_.run_ready();
  EXPECT_TRUE(publisher_->wait_idle(TimePoint{}));
  const auto late = open(1, 0, 5);
  write_all(*late);
  for (const auto& each : {writer, same, late}) {
    const WriteSummary summary = each->summary();
    EXPECT_EQ(summary.published, 0U);
    EXPECT_GE(summary.failed, 1U);
    ASSERT_EQ(summary.first_error.size(), 1U);
    EXPECT_EQ(summary.first_error[0].code, ErrorCode::kCancelled);
  }
  EXPECT_EQ(pool_->bytes_in_use(), 0U);
}

TEST_P(WriterTest, ChecksTheBytesOnceMoreBeforeItSendsThem) {
  // As a stray write into the buffer would: the record does not fit the bytes.
  open(1);
  auto buffer = pool_->acquire(buffer_bytes());
  std::memset(buffer->data(), 0, buffer->size());
  PublishTask::Job job{.space = space_,
                       .key = keys_[0],
                       .parent = {},
                       .unit_keys = units_,
                       .records = {},
                       .buffer = std::move(buffer),
                       .mode = store::PutMode::kIfAbsent};
  for (std::uint32_t layer = 0; layer < space_->layout.layers(); ++layer) {
    for (std::uint32_t unit = 0; unit < space_->layout.units(); ++unit) {
      const std::vector<std::byte> zeros(space_->layout.unit_bytes(layer));
      job.records.push_back({.stored_bytes = static_cast<std::uint32_t>(zeros.size()),
                             .crc32c = digest::crc32c(zeros)});
    }
  }
  job.records.back().crc32c ^= 1;
  std::optional<Result<PublishTask::Outcome>> result;
  PublishTask::start(loop_, store_, wall_clock_, std::move(job), loop_.now() + 1s,
                     [&](Result<PublishTask::Outcome> r) { result.emplace(std::move(r)); });
  loop_.run_to_idle();
  ASSERT_TRUE(result && !*result);
  EXPECT_EQ(result->error().code, ErrorCode::kInternal);
  EXPECT_TRUE(store_.calls().empty());
}

TEST_P(WriterTest, ManyThreadsWriteOneChunkAtOnce) {
  const auto writer = open(4);
  std::vector<std::thread> threads;
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    threads.emplace_back([&, layer] {
      for (std::uint32_t chunk = 0; chunk < 4; ++chunk) {
        EXPECT_TRUE(write(*writer, layer, chunk));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  loop_.run_to_idle();
  EXPECT_EQ(writer->summary().published, 4U);
  for (std::uint32_t i = 0; i < 4; ++i) expect_stored(i);
}

}  // namespace
}  // namespace objectcache::cache
