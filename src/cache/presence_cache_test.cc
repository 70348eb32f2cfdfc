#include "cache/presence_cache.h"

#include <gtest/gtest.h>

#include "cache/chunk_buffer_pool.h"
#include "cache/chunk_marks.h"
#include "cache/request_slots.h"

namespace objectcache::cache {
namespace {

using Answer = PresenceCache::Answer;
constexpr TimePoint kStart{std::chrono::hours(1)};

ChunkId id(unsigned n, unsigned scope = 0) {
  ChunkId out{.scope = ScopeId{scope}, .key = {}};
  out.key.bytes[0] = static_cast<std::byte>(n & 255U);
  out.key.bytes[1] = static_cast<std::byte>(n >> 8);
  return out;
}

TEST(PresenceCache, RemembersBothAnswersForTheirTime) {
  PresenceCache cache(
      {.negative_ttl = std::chrono::milliseconds(500), .positive_ttl = std::chrono::seconds(10)});
  EXPECT_EQ(cache.look_up(id(1), kStart), Answer::kUnknown);
  cache.remember(id(1), true, kStart);
  cache.remember(id(2), false, kStart);
  EXPECT_EQ(cache.look_up(id(1), kStart + std::chrono::seconds(9)), Answer::kPresent);
  EXPECT_EQ(cache.look_up(id(2), kStart + std::chrono::milliseconds(499)), Answer::kAbsent);
  EXPECT_EQ(cache.look_up(id(2), kStart + std::chrono::milliseconds(500)), Answer::kUnknown);
  EXPECT_EQ(cache.look_up(id(1), kStart + std::chrono::seconds(10)), Answer::kUnknown);
  EXPECT_EQ(cache.size(), 0U) << "what expired makes room";
}

TEST(PresenceCache, NegativeAnswersLastAtMostASecond) {
  PresenceCache cache({.negative_ttl = std::chrono::hours(1)});
  cache.remember(id(1), false, kStart);
  EXPECT_EQ(cache.look_up(id(1), kStart + std::chrono::milliseconds(999)), Answer::kAbsent);
  EXPECT_EQ(cache.look_up(id(1), kStart + std::chrono::seconds(1)), Answer::kUnknown);
}

TEST(PresenceCache, ForgetsOnDemandAndTakesTheLastAnswer) {
  PresenceCache cache({});
  cache.remember(id(1), true, kStart);
  cache.forget(id(1));
  cache.forget(id(1));
  EXPECT_EQ(cache.look_up(id(1), kStart), Answer::kUnknown);
  cache.remember(id(1), false, kStart);
  cache.remember(id(1), true, kStart);
  EXPECT_EQ(cache.look_up(id(1), kStart), Answer::kPresent);
}

TEST(PresenceCache, KeepsScopesApart) {
  PresenceCache cache({});
  cache.remember(id(1, 7), true, kStart);
  EXPECT_EQ(cache.look_up(id(1, 8), kStart), Answer::kUnknown);
}

TEST(PresenceCache, IsBoundedAndKeepsWhatIsAskedFor) {
  PresenceCache cache({.entries_max = 100});
  for (unsigned i = 0; i < 100; ++i) cache.remember(id(i), true, kStart);
  for (unsigned i = 1000; i < 3000; ++i) {
    for (unsigned hot = 0; hot < 10; ++hot) {
      ASSERT_EQ(cache.look_up(id(hot), kStart), Answer::kPresent) << "after " << i;
    }
    cache.remember(id(i), true, kStart);
    ASSERT_LE(cache.size(), 100U);
  }
  EXPECT_EQ(cache.look_up(id(50), kStart), Answer::kUnknown);
}

TEST(PresenceCache, OfSizeZeroRemembersNothing) {
  PresenceCache cache({.entries_max = 0});
  cache.remember(id(1), true, kStart);
  EXPECT_EQ(cache.look_up(id(1), kStart), Answer::kUnknown);
}

TEST(ChunkMarks, AreBoundedOldestFirst) {
  ChunkMarks bad(3, ChunkMarks::kBadTtl);
  const auto knows = [&](unsigned n) { return bad.contains(id(n), kStart); };
  for (unsigned i = 0; i < 5; ++i) bad.add(id(i), kStart);
  bad.add(id(4), kStart);
  EXPECT_EQ(bad.size(), 3U);
  EXPECT_FALSE(knows(1));
  EXPECT_TRUE(knows(2));
  bad.forget(id(2));
  bad.forget(id(2));
  EXPECT_FALSE(knows(2));
  bad.add(id(2), kStart);
  bad.add(id(9), kStart);
  EXPECT_TRUE(knows(2)) << "its place in the order is that of its return";
  EXPECT_FALSE(knows(3));
}

TEST(ChunkMarks, AreForgottenAfterAWhile) {
  ChunkMarks bad(3, ChunkMarks::kBadTtl);
  bad.add(id(1), kStart);
  EXPECT_TRUE(bad.contains(id(1), kStart + ChunkMarks::kBadTtl - Duration(1)));
  EXPECT_FALSE(bad.contains(id(1), kStart + ChunkMarks::kBadTtl));
  bad.add(id(1), kStart + ChunkMarks::kBadTtl);
  EXPECT_TRUE(bad.contains(id(1), kStart + ChunkMarks::kBadTtl));
  EXPECT_EQ(bad.size(), 1U);
}

TEST(ChunkBufferPool, RefusesBeyondItsLimitAndReuses) {
  const auto pool = ChunkBufferPool::create(10'000);
  auto a = pool->acquire(4000);
  auto b = pool->acquire(4000);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(pool->acquire(4000), nullptr);
  EXPECT_EQ(pool->acquire(10'001), nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a->data()) % ChunkBufferPool::kAlignBytes, 0U);
  std::byte* const first = a->data();
  a.reset();
  EXPECT_EQ(pool->bytes_in_use(), 4000U);
  EXPECT_EQ(pool->bytes_held(), 8000U);
  a = pool->acquire(4000);
  EXPECT_EQ(a->data(), first);
}

TEST(ChunkBufferPool, KeptBuffersMakeRoomForOtherSizes) {
  const auto pool = ChunkBufferPool::create(10'000);
  pool->acquire(6000).reset();
  EXPECT_EQ(pool->bytes_held(), 6000U);
  const auto other = pool->acquire(5000);
  ASSERT_TRUE(other);
  EXPECT_EQ(pool->bytes_held(), 5000U);
}

TEST(ChunkBufferPool, BuffersMayOutliveIt) {
  auto pool = ChunkBufferPool::create(10'000);
  auto buffer = pool->acquire(100);
  pool.reset();
  buffer->data()[99] = std::byte{1};
  buffer.reset();
}

TEST(RequestSlots, AreGivenInOrder) {
  RequestSlots slots(2);
  std::vector<int> started;
  for (int i = 0; i < 5; ++i) slots.acquire([&started, i] { started.push_back(i); });
  EXPECT_EQ(started, (std::vector{0, 1}));
  EXPECT_EQ(slots.waiting(), 3U);
  slots.release();
  EXPECT_EQ(started, (std::vector{0, 1, 2}));
  slots.release();
  slots.release();
  slots.release();
  slots.release();
  EXPECT_EQ(started.size(), 5U);
  EXPECT_EQ(slots.in_use(), 0U);
}

}  // namespace
}  // namespace objectcache::cache
