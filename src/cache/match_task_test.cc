#include "cache/match_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_event_loop.h"
#include "cache/prove_task.h"
#include "cache/testing/fake_store.h"
#include "cache/testing/sample_space.h"
#include "format/chunk_header.h"

namespace objectcache::cache {
namespace {

using testing::FakeStore;
using namespace std::chrono_literals;

/// A prompt of `count` chunks and a store behind a FakeEventLoop.
class MatchTest : public ::testing::Test {
 protected:
  void make_chunks(std::uint32_t count) {
    chunks_ = chunk_keys(testing::sample_units(space_->spec, count), space_->layout.units());
  }
  [[nodiscard]] std::string name(std::uint32_t chunk) const {
    return space_->object(chunks_[chunk]).text;
  }
  void store_leading(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      store_.set(name(i), std::string(space_->layout.object_bytes(0), 'x'));
    }
  }
  void forget_all() {
    for (const ChunkKey& key : chunks_) presence_.forget(space_->id(key));
  }
  [[nodiscard]] TimePoint in(Duration span) const { return loop_.now() + span; }

  std::shared_ptr<MatchTask> start(TimePoint deadline, std::optional<std::uint32_t> hint = {}) {
    result_.reset();
    return MatchTask::start(
        {.loop = loop_,
         .store = store_,
         .slots = slots_,
         .presence = presence_,
         .bad_objects = bad_objects_,
         .lost = lost_,
         .counters = counters_},
        {.space = space_, .chunks = chunks_, .hint = hint, .deadline = deadline},
        [this](Result<Match> result) {
          EXPECT_FALSE(result_) << "completed twice";
          result_.emplace(std::move(result));
        });
  }
  Match match(TimePoint deadline, std::optional<std::uint32_t> hint = {}) {
    start(deadline, hint);
    EXPECT_FALSE(result_) << "completed from inside the call";
    loop_.run_to_idle();
    EXPECT_TRUE(result_ && *result_);
    return result_ && *result_ ? **result_ : Match{};
  }

  FakeEventLoop loop_;
  FakeStore store_;
  std::shared_ptr<const NamespaceState> space_ = testing::sample_space();
  RequestSlots slots_{64};
  PresenceCache presence_{{}};
  ChunkMarks bad_objects_{100, ChunkMarks::kBadTtl};
  ChunkMarks lost_{100, ChunkMarks::kLostTtl};
  Counters counters_;
  std::vector<ChunkKey> chunks_;
  std::optional<Result<Match>> result_;
};

TEST_F(MatchTest, FindsEachPrefixOf1024InTwoRounds) {
  make_chunks(1024);
  store_.latency = 1ms;
  for (const std::uint32_t stored : {0U, 1U, 31U, 512U, 700U, 1023U, 1024U}) {
    forget_all();
    store_leading(stored);
    const TimePoint before = loop_.now();
    const Match found = match(in(1s));
    EXPECT_EQ(found.chunks, stored);
    EXPECT_LE(found.rounds, 2U);
    EXPECT_LE(found.probes, 68U);
    // The timer of the deadline was cancelled, so the fake's time stands where the answer came.
    EXPECT_LE(loop_.now() - before, 2ms);
  }
  EXPECT_LE(store_.in_flight_max(), 34U);
}

TEST_F(MatchTest, AnswersFromTheCacheTheSecondTime) {
  make_chunks(100);
  store_leading(60);
  EXPECT_EQ(match(in(1s)).chunks, 60U);
  const Match again = match(in(1s), 60);
  EXPECT_EQ(again.chunks, 60U);
  EXPECT_EQ(again.probes, 0U);
  EXPECT_EQ(again.rounds, 0U);
  // Absence is believed for a second only.
  store_leading(61);
  EXPECT_EQ(match(in(1s), 60).chunks, 60U);
  loop_.run_for(1s);
  EXPECT_EQ(match(in(1s), 60).chunks, 61U);
}

TEST_F(MatchTest, NoChunksNeedNoRequest) {
  EXPECT_EQ(match(in(1s)).chunks, 0U);
  EXPECT_TRUE(store_.calls().empty());
}

TEST_F(MatchTest, AForgottenChunkIsAskedForAgain) {
  make_chunks(10);
  store_leading(10);
  EXPECT_EQ(match(in(1s)).chunks, 10U);
  store_.erase(name(4));
  forget_all();
  EXPECT_EQ(match(in(1s)).chunks, 4U);
}

TEST_F(MatchTest, ObjectsOfTheWrongSizeAreNoHitAndMayBeReplaced) {
  make_chunks(10);
  store_leading(10);
  store_.set(name(0), "");
  EXPECT_EQ(match(in(1s)).chunks, 0U);
  EXPECT_TRUE(bad_objects_.contains(space_->id(chunks_[0]), loop_.now()));
  EXPECT_EQ(counters_.corrupt_found, 1U);
}

TEST_F(MatchTest, WhatWasSeenBadIsNoHit) {
  make_chunks(10);
  store_leading(10);
  bad_objects_.add(space_->id(chunks_[7]), loop_.now());
  EXPECT_EQ(match(in(1s)).chunks, 7U);
}

TEST_F(MatchTest, AHoleThatAReadFoundIsNotSteppedOverAgain) {
  make_chunks(1000);
  store_leading(1000);
  store_.erase(name(500));
  const Match promised = match(in(1s));
  ASSERT_EQ(promised.chunks, 1000U) << "a search probes few";
  presence_.forget(space_->id(chunks_[500]));
  lost_.add(space_->id(chunks_[500]), loop_.now());
  EXPECT_EQ(match(in(1s)).chunks, 500U);
  loop_.run_for(2s);
  EXPECT_EQ(match(in(1s)).chunks, 500U);
  loop_.run_for(2s);
  store_leading(1000);
  EXPECT_EQ(match(in(1s)).chunks, 1000U);
  EXPECT_EQ(lost_.size(), 0U) << "it is back";
}

TEST_F(MatchTest, OnlyThisShardCounts) {
  make_chunks(4);
  store_leading(4);
  const auto other = *NamespaceState::create(
      testing::sample_spec(), Shard{.tp_rank = 1, .tp_size = 2}, "default", ScopeId{2});
  space_ = other;
  EXPECT_EQ(match(in(1s)).chunks, 0U);
}

TEST_F(MatchTest, LayerObjectsAreProbedByTheirHeader) {
  space_ = testing::sample_space(ObjectLayout::kLayer);
  make_chunks(4);
  for (std::uint32_t i = 0; i < 3; ++i) {
    for (std::uint32_t l = 0; l < 3; ++l) {
      if (i == 2 && l == 0) continue;  // A writer died before its last object.
      store_.set(space_->object(chunks_[i], l).text,
                 std::string(space_->layout.object_bytes(l), 'x'));
    }
  }
  EXPECT_EQ(match(in(1s)).chunks, 2U);
}

TEST_F(MatchTest, AtTheDeadlineTheAnswerIsWhatIsKnown) {
  make_chunks(1000);
  store_leading(600);
  const std::string last = name(999);
  store_.latency = 1ms;
  store_.fate = [&](const FakeStore::Call& call) {
    return call.key == last ? FakeStore::Fate::kHang : FakeStore::Fate::kServe;
  };
  const TimePoint deadline = in(50ms);
  start(deadline);
  loop_.run_until(deadline - 1ms);
  EXPECT_FALSE(result_);
  loop_.run_until(deadline);
  ASSERT_TRUE(result_ && *result_);
  EXPECT_GT((*result_)->chunks, 500U);
  EXPECT_LE((*result_)->chunks, 600U);
  loop_.run_to_idle();
  EXPECT_EQ(slots_.in_use(), 0U);
}

TEST_F(MatchTest, AStoreThatHangsGivesAMissAtTheDeadline) {
  make_chunks(10);
  store_.fate = [](const FakeStore::Call&) { return FakeStore::Fate::kHang; };
  const TimePoint before = loop_.now();
  EXPECT_EQ(match(in(20ms)).chunks, 0U);
  EXPECT_EQ(loop_.now() - before, 20ms);
}

TEST_F(MatchTest, AStoreThatFailsIsAnErrorUnlessSomethingWasFound) {
  make_chunks(100);
  store_leading(100);
  store_.fate = [](const FakeStore::Call&) { return FakeStore::Fate::kDeny; };
  start(in(1s));
  loop_.run_to_idle();
  ASSERT_TRUE(result_);
  ASSERT_FALSE(*result_);
  EXPECT_EQ(result_->error().code, ErrorCode::kPermissionDenied);

  const std::string broken = name(50);
  store_.fate = [&](const FakeStore::Call& call) {
    return call.key == broken ? FakeStore::Fate::kFail : FakeStore::Fate::kServe;
  };
  EXPECT_EQ(match(in(1s), 50).chunks, 50U);
}

TEST_F(MatchTest, CancelEndsItOnceAndFreesTheSlots) {
  make_chunks(100);
  store_.fate = [](const FakeStore::Call&) { return FakeStore::Fate::kHang; };
  auto task = start(in(1h));
  loop_.run_ready();
  task->cancel();
  task->cancel();
  EXPECT_FALSE(result_);
  loop_.run_ready();
  ASSERT_TRUE(result_ && !*result_);
  EXPECT_EQ(result_->error().code, ErrorCode::kCancelled);
  EXPECT_EQ(slots_.in_use(), 0U);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(MatchTest, MatchesShareTheSlots) {
  make_chunks(1000);
  RequestSlots& slots = slots_;
  for (int i = 0; i < 60; ++i) slots.acquire([] {});
  store_.latency = 1ms;
  EXPECT_EQ(match(in(1s)).chunks, 0U);
  EXPECT_LE(store_.in_flight_max(), 4U);
}

/// Headers as a writer leaves them, in front of slices that nobody looks at here.
class ProveTest : public MatchTest {
 protected:
  void store_headers(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) store_.set(name(i), object(i));
  }
  [[nodiscard]] std::string object(std::uint32_t chunk) const {
    const auto units = testing::sample_units(space_->spec, chunk + 1);
    const auto& layout = space_->layout;
    format::ChunkHeader header{.name = space_->digest,
                               .shard = space_->shard,
                               .key = chunks_[chunk],
                               .parent = chunk == 0 ? ChunkKey{} : chunks_[chunk - 1],
                               .created_unix_ms = 1,
                               .unit_keys = {units.end() - layout.units(), units.end()},
                               .records = {}};
    for (std::uint32_t l = 0; l < layout.layers(); ++l) {
      for (std::uint32_t u = 0; u < layout.units(); ++u) {
        header.records.push_back(
            {.stored_bytes = static_cast<std::uint32_t>(layout.unit_bytes(l)), .crc32c = 0});
      }
    }
    std::string out(layout.object_bytes(0), 'x');
    EXPECT_TRUE(format::encode_header(
        layout, header, {reinterpret_cast<std::byte*>(out.data()), layout.header_bytes()}));
    return out;
  }
  void start_prove(TimePoint deadline, std::uint32_t requests_max = 8) {
    task_ = ProveTask::start(
        {.loop = loop_, .store = store_, .slots = slots_},
        {.space = space_, .chunks = chunks_, .requests_max = requests_max, .deadline = deadline},
        [this](ProveTask::Answer answer) {
          EXPECT_FALSE(answer_) << "completed twice";
          answer_.emplace(std::move(answer));
        });
  }
  ProveTask::Answer prove() {
    answer_.reset();
    start_prove(in(1s));
    loop_.run_to_idle();
    EXPECT_TRUE(answer_);
    return answer_.value_or(ProveTask::Answer{});
  }

  std::shared_ptr<ProveTask> task_;
  std::optional<ProveTask::Answer> answer_;
};

TEST_F(ProveTest, CountsTheLeadingGoodOnes) {
  make_chunks(100);
  for (const std::uint32_t stored : {0U, 1U, 57U, 100U}) {
    store_headers(stored);
    const auto answer = prove();
    EXPECT_EQ(answer.proof.chunks, stored);
    EXPECT_FALSE(answer.error);
    EXPECT_FALSE(answer.bad);
    EXPECT_EQ(answer.missing, stored < 100 ? std::optional(stored) : std::nullopt);
  }
  EXPECT_LE(store_.in_flight_max(), 8U);
}

TEST_F(ProveTest, FindsEveryKindOfBadObject) {
  make_chunks(10);
  store_headers(10);
  const std::string good = object(5);
  std::string flipped = good;
  flipped[40] ^= 1;
  const std::vector<std::string> bad = {
      "", good.substr(0, 100), good.substr(0, good.size() - 1), flipped, object(4), good + "x"};
  for (const std::string& body : bad) {
    store_.set(name(5), body);
    const auto answer = prove();
    EXPECT_EQ(answer.proof.chunks, 5U);
    EXPECT_EQ(answer.bad, 5U);
    ASSERT_TRUE(answer.error);
    EXPECT_TRUE(answer.error->code == ErrorCode::kCorrupt ||
                answer.error->code == ErrorCode::kIncompatible)
        << answer.error->to_string();
    EXPECT_NE(answer.error->to_string().find(name(5)), std::string::npos)
        << answer.error->to_string();
  }
}

TEST_F(ProveTest, ReadsABadHeaderOnceMore) {
  make_chunks(3);
  store_headers(3);
  const std::string good = object(1);
  std::string flipped = good;
  flipped[40] ^= 1;
  store_.set(name(1), flipped);
  store_.latency = 1ms;
  answer_.reset();
  start_prove(in(1s));
  loop_.run_for(1ms);
  store_.set(name(1), good);
  loop_.run_to_idle();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->proof.chunks, 3U);
}

TEST_F(ProveTest, DoesNotWaitBehindTheFirstMiss) {
  make_chunks(20);
  store_headers(20);
  store_.erase(name(2));
  const std::string hung = name(5);
  store_.fate = [hung](const FakeStore::Call& call) {
    return call.key == hung ? FakeStore::Fate::kHang : FakeStore::Fate::kServe;
  };
  const TimePoint before = loop_.now();
  EXPECT_EQ(prove().proof.chunks, 2U);
  EXPECT_EQ(loop_.now(), before);
}

TEST_F(ProveTest, AtTheDeadlineTellsWhatItKnows) {
  make_chunks(20);
  store_headers(20);
  const std::string hung = name(5);
  store_.fate = [hung](const FakeStore::Call& call) {
    return call.key == hung ? FakeStore::Fate::kHang : FakeStore::Fate::kServe;
  };
  const auto answer = prove();
  EXPECT_EQ(answer.proof.chunks, 5U);
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->code, ErrorCode::kDeadlineExceeded);
}

TEST_F(ProveTest, EndsAtItsDeadlineWithoutEverGettingASlot) {
  make_chunks(20);
  for (int i = 0; i < 64; ++i) slots_.acquire([] {});
  EXPECT_EQ(prove().proof.chunks, 0U);
  for (int i = 0; i < 64; ++i) slots_.release();
  EXPECT_EQ(slots_.in_use(), 0U);
}

TEST_F(ProveTest, CancelWaitsForTheStore) {
  make_chunks(20);
  store_.fate = [](const FakeStore::Call&) { return FakeStore::Fate::kHang; };
  start_prove(in(1h));
  loop_.run_ready();
  task_->cancel();
  EXPECT_FALSE(answer_);
  loop_.run_ready();
  EXPECT_TRUE(answer_);
  EXPECT_EQ(slots_.in_use(), 0U);
}

}  // namespace
}  // namespace objectcache::cache
