#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/event_loop.h"

namespace objectcache {

/// An EventLoop of the standard library alone: a queue, timers and a condition variable, on the
/// real clock. For callers that need completions but no sockets: the file store, blocking calls,
/// tests. The loop that owns sockets is http/reactor.h.
///
/// Threads: the constructing thread owns the loop until another one calls run(). Tasks that are
/// still queued when the loop is destroyed are dropped without being run.
class ThreadEventLoop final : public EventLoop {
 public:
  ThreadEventLoop();
  ~ThreadEventLoop() override;
  ThreadEventLoop(const ThreadEventLoop&) = delete;
  ThreadEventLoop& operator=(const ThreadEventLoop&) = delete;

  [[nodiscard]] TimePoint now() const override { return std::chrono::steady_clock::now(); }
  void post(Task task) override;
  TimerId run_at(TimePoint when, Task task) override;
  bool cancel_timer(TimerId timer) override;
  [[nodiscard]] bool is_owner_thread() const override;

  /// Makes the calling thread the owner and runs tasks until stop().
  void run();
  /// Owner thread, never from inside a task. Runs tasks until `ready` holds, which is asked after
  /// each task. False: `until` came first.
  [[nodiscard]] bool run_until(const std::function<bool()>& ready, TimePoint until);
  /// Any thread. run() returns after the task that is running now.
  void stop();

 private:
  /// Runs one task if one is due. Else waits for one, at most to `until`.
  void step(TimePoint until);

  std::atomic<std::thread::id> owner_;
  std::atomic<bool> stopped_{false};

  // Owner thread only.
  std::map<std::pair<TimePoint, std::uint64_t>, Task> timers_;
  std::unordered_map<std::uint64_t, TimePoint> timer_times_;
  std::uint64_t last_timer_ = 0;
  std::vector<Task> running_;  // Taken from posted_, in reverse: the next one is at the back.

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> posted_;  // Guarded by mutex_.
};

/// A thread that runs a ThreadEventLoop from construction to destruction.
class EventLoopThread {
 public:
  EventLoopThread();
  ~EventLoopThread();
  EventLoopThread(const EventLoopThread&) = delete;
  EventLoopThread& operator=(const EventLoopThread&) = delete;

  [[nodiscard]] ThreadEventLoop& loop() { return loop_; }

 private:
  ThreadEventLoop loop_;
  std::thread thread_;
};

}  // namespace objectcache
