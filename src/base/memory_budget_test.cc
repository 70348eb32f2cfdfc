#include "base/memory_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fake_event_loop.h"
#include "base/thread_event_loop.h"

namespace objectcache {
namespace {

using Ticket = MemoryBudget::Ticket;

struct Caller {
  std::shared_ptr<MemoryBudget::Reservation> reservation;
  std::optional<Result<Ticket>> result;
  [[nodiscard]] bool has_ticket() const { return result && result->has_value(); }
  [[nodiscard]] ErrorCode code() const { return result->error().code; }
};

class MemoryBudgetTest : public testing::Test {
 protected:
  void ask(Caller& caller, std::uint64_t bytes, Duration patience = std::chrono::hours(1)) {
    caller.reservation =
        budget.reserve(loop, bytes, loop.now() + patience, [&caller](Result<Ticket> r) {
          EXPECT_FALSE(caller.result.has_value());
          caller.result.emplace(std::move(r));
        });
    EXPECT_FALSE(caller.result.has_value()) << "completed inside the call";
  }

  FakeEventLoop loop;
  MemoryBudget budget{{.capacity_bytes = 100, .waiters_max = 4}};
};

TEST_F(MemoryBudgetTest, LendsAndTakesBack) {
  Caller a;
  ask(a, 60);
  loop.run_ready();
  ASSERT_TRUE(a.has_ticket());
  EXPECT_EQ(budget.stats().lent_bytes, 60U);
  (*a.result)->give_back(20);
  EXPECT_EQ(budget.stats().lent_bytes, 40U);
  a.result.reset();
  EXPECT_EQ(budget.stats().lent_bytes, 0U);
  EXPECT_EQ(budget.stats().lent_bytes_max, 60U);
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(MemoryBudgetTest, WaitersAreServedInOrderAndALargeOneIsNotOvertaken) {
  Caller first;
  Caller large;
  Caller small;
  ask(first, 60);
  ask(large, 80);
  ask(small, 10);
  loop.run_ready();
  EXPECT_TRUE(first.has_ticket());
  EXPECT_FALSE(large.result);
  EXPECT_FALSE(small.result) << "it would fit, but came later";
  EXPECT_FALSE(budget.try_reserve(10).has_value()) << "nor does try_reserve jump the queue";
  first.result.reset();
  loop.run_ready();
  EXPECT_TRUE(large.has_ticket());
  EXPECT_TRUE(small.has_ticket());
}

TEST_F(MemoryBudgetTest, CancellingTheHeadLetsThoseBehindIn) {
  Caller first;
  Caller large;
  Caller small;
  ask(first, 60);
  ask(large, 80);
  ask(small, 10);
  loop.run_ready();
  large.reservation->cancel();
  EXPECT_FALSE(large.result) << "completed inside cancel()";
  large.reservation->cancel();
  loop.run_ready();
  EXPECT_EQ(large.code(), ErrorCode::kCancelled);
  EXPECT_TRUE(small.has_ticket());
}

TEST_F(MemoryBudgetTest, ADeadlineEndsTheWait) {
  Caller first;
  Caller late;
  ask(first, 100);
  ask(late, 1, std::chrono::milliseconds(5));
  loop.run_for(std::chrono::milliseconds(4));
  EXPECT_FALSE(late.result);
  loop.run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(late.code(), ErrorCode::kDeadlineExceeded);
  Caller past;
  ask(past, 1, Duration(-1));
  loop.run_ready();
  EXPECT_EQ(past.code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(MemoryBudgetTest, LimitsAreRefusedByName) {
  Caller nothing;
  Caller huge;
  ask(nothing, 0);
  ask(huge, 101);
  loop.run_ready();
  EXPECT_EQ(nothing.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(huge.code(), ErrorCode::kLimitExceeded);
  EXPECT_NE(huge.result->error().message.find("100 bytes"), std::string::npos);

  std::vector<Caller> callers(6);
  for (auto& caller : callers) ask(caller, 100);
  loop.run_ready();
  EXPECT_TRUE(callers[0].has_ticket());
  for (int i = 1; i < 5; ++i) EXPECT_FALSE(callers.at(i).result) << i;
  EXPECT_EQ(callers[5].code(), ErrorCode::kLimitExceeded);
  for (auto& caller : callers) caller.reservation->cancel();
  loop.run_ready();
}

TEST_F(MemoryBudgetTest, ACancelAfterTheGrantKeepsTheTicket) {
  Caller a;
  ask(a, 100);
  a.reservation->cancel();
  loop.run_ready();
  EXPECT_TRUE(a.has_ticket());
}

TEST_F(MemoryBudgetTest, AGrantThatIsNeverDeliveredIsGivenBack) {
  {
    FakeEventLoop other;
    static_cast<void>(budget.reserve(other, 100, other.now() + std::chrono::hours(1), [](auto) {}));
    EXPECT_EQ(budget.stats().lent_bytes, 100U);
  }
  EXPECT_EQ(budget.stats().lent_bytes, 0U);
}

TEST(MemoryBudget, SeveralLoopsNeverExceedTheCapacity) {
  MemoryBudget budget({.capacity_bytes = 10});
  std::atomic<int> finished{0};
  constexpr int kEach = 500;
  {
    EventLoopThread threads[3];
    for (auto& thread : threads) {
      thread.loop().post([&budget, &finished, &loop = thread.loop()] {
        for (int i = 0; i < kEach; ++i) {
          static_cast<void>(budget.reserve(loop, 1 + static_cast<unsigned>(i) % 10,
                                           loop.now() + std::chrono::hours(1),
                                           [&](Result<Ticket> r) {
                                             EXPECT_TRUE(r.has_value());
                                             ++finished;
                                           }));
        }
      });
    }
    while (finished < 3 * kEach) std::this_thread::yield();
  }
  EXPECT_EQ(budget.stats().lent_bytes, 0U);
  EXPECT_LE(budget.stats().lent_bytes_max, 10U);
}

}  // namespace
}  // namespace objectcache
