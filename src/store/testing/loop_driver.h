#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/event_loop.h"
#include "base/fake_event_loop.h"
#include "base/thread_event_loop.h"

namespace objectcache::store {

/// How a test uses an EventLoop without caring which thread runs it.
///
/// Threads: one test thread.
class LoopDriver {
 public:
  virtual ~LoopDriver() = default;
  [[nodiscard]] virtual EventLoop& loop() = 0;
  /// Runs `task` on the loop's thread and waits for its end.
  virtual void run(const std::function<void()>& task) = 0;
  /// Lets the loop work until `ready`, asked on the loop's thread, holds. False: `limit` passed.
  [[nodiscard]] virtual bool until(const std::function<bool()>& ready, Duration limit) = 0;
};

/// Drives a FakeEventLoop: `limit` is virtual time, and time moves only when nothing else is left.
class FakeLoopDriver final : public LoopDriver {
 public:
  [[nodiscard]] FakeEventLoop& loop() override { return loop_; }
  void run(const std::function<void()>& task) override { task(); }
  [[nodiscard]] bool until(const std::function<bool()>& ready, Duration limit) override {
    const TimePoint end = loop_.now() + limit;
    loop_.run_ready();
    while (!ready()) {
      if (loop_.now() >= end) return false;
      loop_.run_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  FakeEventLoop loop_;
};

/// Drives a ThreadEventLoop on the test's own thread, for stores that complete from other threads.
class ThreadLoopDriver final : public LoopDriver {
 public:
  [[nodiscard]] ThreadEventLoop& loop() override { return loop_; }
  void run(const std::function<void()>& task) override { task(); }
  [[nodiscard]] bool until(const std::function<bool()>& ready, Duration limit) override {
    return loop_.run_until(ready, loop_.now() + limit);
  }

 private:
  ThreadEventLoop loop_;
};

/// Drives any loop that another thread runs, such as http::Reactor: tasks are posted, and `ready`
/// is asked every 200 us.
///
/// `owner` is kept alive as long as the driver.
class ForeignLoopDriver final : public LoopDriver {
 public:
  ForeignLoopDriver(EventLoop& loop, std::shared_ptr<void> owner)
      : owner_(std::move(owner)), loop_(loop) {}

  [[nodiscard]] EventLoop& loop() override { return loop_; }
  void run(const std::function<void()>& task) override {
    Flag flag;
    loop_.post([&] {
      task();
      flag.raise();
    });
    flag.wait();
  }
  [[nodiscard]] bool until(const std::function<bool()>& ready, Duration limit) override {
    Flag flag;
    bool held = false;
    const TimePoint end = loop_.now() + limit;
    std::function<void()> ask = [&] {
      held = ready();
      if (held || loop_.now() >= end) return flag.raise();
      loop_.run_at(loop_.now() + std::chrono::microseconds(200), [&] { ask(); });
    };
    loop_.post([&] { ask(); });
    flag.wait();
    return held;
  }

 private:
  class Flag {
   public:
    void raise() {
      // Under the lock: the waiter may destroy this as soon as it is let go.
      const std::lock_guard lock(mutex_);
      raised_ = true;
      condition_.notify_all();
    }
    void wait() {
      std::unique_lock lock(mutex_);
      condition_.wait(lock, [this] { return raised_; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable condition_;
    bool raised_ = false;
  };

  std::shared_ptr<void> owner_;
  EventLoop& loop_;
};

}  // namespace objectcache::store
