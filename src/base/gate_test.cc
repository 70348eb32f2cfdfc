#include "base/gate.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace objectcache {
namespace {

TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }
TimePoint past() { return std::chrono::steady_clock::now() - std::chrono::seconds(1); }

TEST(Gate, RefusesNewWorkOnceClosed) {
  Gate gate;
  EXPECT_TRUE(gate.enter().has_value());
  gate.close();
  EXPECT_FALSE(gate.enter().has_value());
  EXPECT_TRUE(gate.closed());
}

TEST(Gate, DrainsOnlyWhenTheLastPassIsGone) {
  Gate gate;
  auto first = gate.enter();
  auto second = gate.enter();
  gate.close();
  EXPECT_EQ(gate.inside(), 2U);
  first.reset();
  EXPECT_FALSE(gate.wait_drained(past()));
  second.reset();
  EXPECT_TRUE(gate.wait_drained(past()));
}

TEST(Gate, AnOpenGateIsNeverDrained) {
  Gate gate;
  EXPECT_FALSE(gate.wait_drained(past()));
}

TEST(Gate, AMovedPassCountsOnce) {
  Gate gate;
  auto pass = gate.enter();
  Gate::Pass moved = std::move(*pass);
  pass.reset();
  EXPECT_EQ(gate.inside(), 1U);
}

TEST(Gate, WaitsForPassesOfOtherThreads) {
  Gate gate;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([pass = gate.enter()] { std::this_thread::yield(); });
  }
  gate.close();
  for (auto& thread : threads) thread.join();
  threads.clear();
  EXPECT_TRUE(gate.wait_drained(soon()));
}

}  // namespace
}  // namespace objectcache
