#include "http/reactor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace objectcache::http {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Reactor> start() {
  auto reactor = Reactor::start();
  EXPECT_TRUE(reactor.has_value());
  return std::move(*reactor);
}

// Runs `task` on the loop and waits for it.
template <class F>
void run_on(Reactor& reactor, F task) {
  std::promise<void> done;
  reactor.post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

TEST(Reactor, RunsPostedTasksInOrderOnItsOwnThread) {
  const auto reactor = start();
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) reactor->post([&seen, i] { seen.push_back(i); });
  bool owner = false;
  run_on(*reactor, [&] { owner = reactor->is_owner_thread(); });
  EXPECT_TRUE(owner);
  EXPECT_FALSE(reactor->is_owner_thread());
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(Reactor, PostFromTheLoopRunsLaterAndInOrder) {
  const auto reactor = start();
  std::vector<int> seen;
  std::promise<void> done;
  reactor->post([&] {
    reactor->post([&] { seen.push_back(2); });
    reactor->post([&] {
      seen.push_back(3);
      done.set_value();
    });
    seen.push_back(1);
  });
  done.get_future().wait();
  EXPECT_EQ(seen, (std::vector{1, 2, 3}));
}

TEST(Reactor, ManyThreadsPostAndNothingIsLost) {
  const auto reactor = start();
  std::uint64_t sum = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 5000; ++i) reactor->post([&sum] { ++sum; });
      });
    }
  }
  run_on(*reactor, [] {});
  EXPECT_EQ(sum, 20000U);
}

TEST(Reactor, TimersRunInOrderOfTimeAndNotEarly) {
  const auto reactor = start();
  std::vector<int> seen;
  std::promise<void> done;
  bool early = false;
  reactor->post([&] {
    const TimePoint now = reactor->now();
    const auto at = [&](Duration after, int value) {
      reactor->run_at(now + after, [&, now, after, value] {
        early = early || reactor->now() < now + after;
        seen.push_back(value);
        if (value == 3) done.set_value();
      });
    };
    at(6ms, 3);
    at(2ms, 1);
    at(4ms, 2);
    at(-5s, 0);
    EXPECT_TRUE(seen.empty()) << "a timer ran inside run_at";
  });
  done.get_future().wait();
  EXPECT_EQ(seen, (std::vector{0, 1, 2, 3}));
  EXPECT_FALSE(early);
}

TEST(Reactor, CancelledTimerNeverRuns) {
  const auto reactor = start();
  std::promise<void> done;
  bool ran = false;
  run_on(*reactor, [&] {
    const TimePoint now = reactor->now();
    const TimerId first = reactor->run_at(now + 1ms, [&] { ran = true; });
    reactor->run_at(now + 3ms, [&] { done.set_value(); });
    EXPECT_TRUE(reactor->cancel_timer(first));
    EXPECT_FALSE(reactor->cancel_timer(first));
    EXPECT_FALSE(reactor->cancel_timer(TimerId::kNone));
    EXPECT_FALSE(reactor->cancel_timer(static_cast<TimerId>(12345)));
  });
  done.get_future().wait();
  EXPECT_FALSE(ran);
}

TEST(Reactor, TimerMayCancelAnotherThatIsDueTogetherWithIt) {
  const auto reactor = start();
  std::promise<void> done;
  bool ran = false;
  bool cancelled = false;
  run_on(*reactor, [&] {
    const TimePoint when = reactor->now() + 1ms;
    auto second = std::make_shared<TimerId>();
    reactor->run_at(when, [&, second] { cancelled = reactor->cancel_timer(*second); });
    *second = reactor->run_at(when, [&] { ran = true; });
    reactor->run_at(when + 1ms, [&] { done.set_value(); });
  });
  done.get_future().wait();
  EXPECT_TRUE(cancelled);
  EXPECT_FALSE(ran);
}

TEST(Reactor, TimerThatIsAlwaysDueDoesNotStarvePosts) {
  const auto reactor = start();
  std::atomic<bool> stop = false;
  std::function<void()> again = [&] {
    if (!stop) reactor->run_at(reactor->now(), [&] { again(); });
  };
  run_on(*reactor, [&] { again(); });
  run_on(*reactor, [&] { stop = true; });
  run_on(*reactor, [] {});
}

// Counts how often it is destroyed, to see that nothing leaks and nothing runs.
struct Witness {
  std::atomic<int>* destroyed;
  explicit Witness(std::atomic<int>* d) : destroyed(d) {}
  ~Witness() { ++*destroyed; }
};

TEST(Reactor, StopDropsWhatIsPendingWithoutRunningIt) {
  std::atomic<int> destroyed = 0;
  std::atomic<int> ran = 0;
  {
    const auto reactor = start();
    std::latch blocked(1);
    std::latch release(1);
    reactor->post([&] {
      reactor->run_at(reactor->now() + 1h,
                      [&ran, w = std::make_unique<Witness>(&destroyed)] { ++ran; });
      blocked.count_down();
      release.wait();
    });
    reactor->post([&ran, w = std::make_unique<Witness>(&destroyed)] { ++ran; });
    blocked.wait();
    std::jthread unblock([&] { release.count_down(); });
    reactor->stop();
    reactor->stop();
    EXPECT_TRUE(reactor->is_owner_thread()) << "whoever stopped it may clean up";
    const int ran_before = ran;
    reactor->post([&ran, w = std::make_unique<Witness>(&destroyed)] { ++ran; });
    reactor->run_at(reactor->now(), [&ran, w = std::make_unique<Witness>(&destroyed)] { ++ran; });
    EXPECT_EQ(ran, ran_before);
  }
  EXPECT_EQ(destroyed, 4);
  EXPECT_LE(ran, 1) << "only the task that raced with stop() may have run";
}

TEST(Reactor, TaskThatPostsWhenDestroyedDoesNoHarm) {
  std::atomic<int> destroyed = 0;
  {
    const auto reactor = start();
    struct PostsAgain {
      Reactor* reactor;
      std::atomic<int>* destroyed;
      ~PostsAgain() {
        reactor->post([w = std::make_unique<Witness>(destroyed)] {});
      }
    };
    reactor->stop();
    reactor->post([p = std::make_unique<PostsAgain>(reactor.get(), &destroyed)] {});
  }
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace objectcache::http
