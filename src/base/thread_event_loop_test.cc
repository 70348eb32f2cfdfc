#include "base/thread_event_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/blocking.h"

namespace objectcache {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ThreadEventLoop, RunsPostedTasksInOrderAndNeverInside) {
  ThreadEventLoop loop;
  std::vector<int> order;
  loop.post([&] {
    loop.post([&] { order.push_back(3); });
    order.push_back(1);
  });
  loop.post([&] { order.push_back(2); });
  EXPECT_TRUE(order.empty());
  EXPECT_TRUE(loop.run_until([&] { return order.size() == 3; }, loop.now() + seconds(20)));
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(ThreadEventLoop, TimersRunInOrderOfTimeAndCanBeCancelled) {
  ThreadEventLoop loop;
  std::vector<int> order;
  const TimePoint t = loop.now();
  loop.run_at(t + milliseconds(2), [&] { order.push_back(2); });
  loop.run_at(t + milliseconds(1), [&] { order.push_back(1); });
  const TimerId never = loop.run_at(t + milliseconds(1), [&] { order.push_back(9); });
  const TimerId third = loop.run_at(t + milliseconds(3), [&] { order.push_back(3); });
  EXPECT_TRUE(loop.cancel_timer(never));
  EXPECT_FALSE(loop.cancel_timer(never));
  EXPECT_TRUE(loop.run_until([&] { return order.size() == 3; }, t + seconds(20)));
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_GE(loop.now(), t + milliseconds(3));
  EXPECT_FALSE(loop.cancel_timer(third)) << "it has run";
}

TEST(ThreadEventLoop, RunUntilEndsAtItsTime) {
  ThreadEventLoop loop;
  const TimePoint until = loop.now() + milliseconds(2);
  EXPECT_FALSE(loop.run_until([] { return false; }, until));
  EXPECT_GE(loop.now(), until);
}

TEST(ThreadEventLoop, TheThreadOfTheLoopIsItsOwner) {
  EventLoopThread thread;
  EXPECT_FALSE(thread.loop().is_owner_thread());
  std::atomic<int> owner{-1};
  thread.loop().post([&] { owner = thread.loop().is_owner_thread() ? 1 : 0; });
  while (owner < 0) std::this_thread::yield();
  EXPECT_EQ(owner, 1);
}

TEST(ThreadEventLoop, DestructionDropsWhatIsQueued) {
  auto alive = std::make_shared<int>();
  {
    ThreadEventLoop loop;
    loop.post([alive] { FAIL(); });
    loop.run_at(loop.now(), [alive] { FAIL(); });
  }
  EXPECT_EQ(alive.use_count(), 1);
}

/// A call that ends only when told so, or when cancelled.
struct FakeCall {
  EventLoop* loop;
  std::move_only_function<void(Result<int>)> done;
  bool stubborn = false;  // Ignores cancel() for a while.
  void cancel() {
    loop->run_at(loop->now() + milliseconds(stubborn ? 3 : 0), [this] {
      if (done) std::exchange(done, nullptr)(fail(ErrorCode::kCancelled, "cancelled"));
    });
  }
};

TEST(RunBlocking, GivesTheResult) {
  EventLoopThread thread;
  auto& loop = thread.loop();
  const auto result = run_blocking<int>(loop, loop.now() + seconds(20), [&](auto done) {
    auto call = std::make_shared<FakeCall>(FakeCall{&loop, std::move(done)});
    loop.post([call] { call->done(7); });
    return call;
  });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, 7);
}

TEST(RunBlocking, CancelsAtTheDeadlineAndWaitsForTheCompletion) {
  EventLoopThread thread;
  auto& loop = thread.loop();
  std::atomic<bool> completed{false};
  const auto result = run_blocking<int>(loop, loop.now() + milliseconds(1), [&](auto done) {
    auto call = std::make_shared<FakeCall>(FakeCall{&loop, {}, true});
    call->done = [&completed, done = std::move(done)](Result<int> r) mutable {
      completed = true;
      done(std::move(r));
    };
    return call;
  });
  EXPECT_TRUE(completed) << "returned while the call could still touch memory";
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kDeadlineExceeded);
}

TEST(RunBlocking, RefusesTheLoopsOwnThread) {
  ThreadEventLoop loop;
  const auto result = run_blocking<int>(loop, loop.now() + seconds(1), [&](auto done) {
    return std::make_shared<FakeCall>(FakeCall{&loop, std::move(done)});
  });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace objectcache
