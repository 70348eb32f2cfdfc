#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include "base/thread_event_loop.h"
#include "store/conformance.h"
#include "store/testing/conformance_harness.h"

namespace objectcache::store {
namespace {

/// On the virtual clock: one thread, repeatable.
class VirtualMemory final : public StoreUnderTest {
 public:
  [[nodiscard]] ObjectStore& store() override { return store_; }
  [[nodiscard]] LoopDriver& driver() override { return driver_; }

 private:
  MemoryStore store_{{.piece_bytes = 100'000}};
  FakeLoopDriver driver_;
};
const bool kVirtual =
    register_conformance("VirtualMemoryStore", [] { return std::make_unique<VirtualMemory>(); });

/// On real loops of several threads.
class ThreadedMemory final : public StoreUnderTest {
 public:
  [[nodiscard]] ObjectStore& store() override { return store_; }
  [[nodiscard]] LoopDriver& driver() override { return driver_; }
  [[nodiscard]] std::unique_ptr<LoopDriver> another_driver() override {
    auto thread = std::make_shared<EventLoopThread>();
    auto& loop = thread->loop();
    return std::make_unique<ForeignLoopDriver>(loop, std::move(thread));
  }

 private:
  MemoryStore store_;
  ThreadLoopDriver driver_;
};
const bool kThreaded =
    register_conformance("ThreadedMemoryStore", [] { return std::make_unique<ThreadedMemory>(); });

class MemoryStoreTest : public testing::Test, public StoreUnderTest {
 protected:
  [[nodiscard]] ObjectStore& store() override { return store_; }
  [[nodiscard]] LoopDriver& driver() override { return driver_; }

  MemoryStore store_{{.capacity_bytes = 1000, .objects_max = 3, .piece_bytes = 64}};
  FakeLoopDriver driver_;
  ConformanceOptions options_;
  conformance::Harness h_{*this, options_};
};

TEST_F(MemoryStoreTest, AFullStoreRefusesAndRecovers) {
  h_.create("a", conformance::make_bytes(900, 1));
  const auto full = h_.put("b", conformance::make_bytes(101, 2));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kOutOfSpace);
  EXPECT_NE(full.error().to_string().find("memory:t/b"), std::string::npos)
      << full.error().to_string();
  h_.create("b", conformance::make_bytes(100, 2));
  EXPECT_EQ(store_.usage().bytes, 1000U);
  h_.remove("a");
  EXPECT_EQ(store_.usage().bytes, 100U);
  h_.create("c", conformance::make_bytes(900, 3));
}

TEST_F(MemoryStoreTest, TheNumberOfObjectsIsBounded) {
  for (const auto* name : {"a", "b", "c"}) h_.create(name, {});
  const auto full = h_.put("d", {});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kOutOfSpace);
  ASSERT_TRUE(h_.put("a", conformance::make_bytes(10, 1), PutMode::kReplace));
  EXPECT_EQ(store_.usage().objects, 3U);
}

TEST_F(MemoryStoreTest, RoomOfARunningPutIsTakenAndGivenBack) {
  const auto body = conformance::make_bytes(600, 1);
  const auto first = h_.start_put("a", body);
  const auto second = h_.start_put("a", body);
  const auto one = h_.finish(first);
  const auto two = h_.finish(second);
  EXPECT_TRUE(one.has_value());
  EXPECT_FALSE(two.has_value()) << "both fit only one after the other";
  const auto third = h_.start_put("b", conformance::make_bytes(300, 2));
  third->operation->cancel();
  EXPECT_FALSE(h_.finish(third).has_value());
  EXPECT_EQ(store_.usage().bytes, 600U);
}

TEST_F(MemoryStoreTest, LeavesNoTimersBehind) {
  h_.create("a", conformance::make_bytes(600, 1));
  auto reading = h_.start_get("a", {.length = 600, .grant_bytes = 100});
  h_.settle();
  EXPECT_EQ(driver_.loop().timers(), 1U);
  reading->call->operation->grant(500);
  EXPECT_TRUE(h_.finish(reading->call).has_value());
  EXPECT_EQ(driver_.loop().timers(), 0U);
}

}  // namespace
}  // namespace objectcache::store
