#pragma once

#include <cstdint>
#include <functional>

#include "objectcache/types.h"

namespace objectcache {

/// Identifies a timer of one EventLoop; never reused.
enum class TimerId : std::uint64_t { kNone = 0 };

/// The clock, the timers and the executor that asynchronous code runs on: one thread that runs
/// tasks one after the other. Real ones sit on a reactor (http/reactor.h); tests use
/// base/fake_event_loop.h, whose time moves only when the test says so.
///
/// Every asynchronous operation belongs to one loop: it is started, cancelled and completed on
/// that loop's thread, so operations need no locks. Threads meet only in post().
class EventLoop {
 public:
  using Task = std::move_only_function<void()>;

  virtual ~EventLoop() = default;

  /// Any thread. Never goes backwards.
  [[nodiscard]] virtual TimePoint now() const = 0;
  /// Any thread. Runs `task` later on the loop's thread, never inside this call; tasks of one
  /// posting thread run in the order in which they were posted.
  virtual void post(Task task) = 0;
  /// Owner thread. Runs `task` once, not before `when`, never inside this call.
  virtual TimerId run_at(TimePoint when, Task task) = 0;
  /// Owner thread. True: the task will not run. Unknown and finished ids give false.
  virtual bool cancel_timer(TimerId timer) = 0;
  /// Any thread.
  [[nodiscard]] virtual bool is_owner_thread() const = 0;
};

/// Time of day, for signatures and creation stamps only. Any thread.
class WallClock {
 public:
  virtual ~WallClock() = default;
  [[nodiscard]] virtual std::chrono::system_clock::time_point now() const = 0;
};

}  // namespace objectcache
