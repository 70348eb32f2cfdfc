#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/event_loop.h"

namespace objectcache {

/// An EventLoop for tests: virtual time, no thread. Stricter than the real one: tasks run only
/// inside run_*(), in a fixed order, so that a run is repeatable.
///
/// Threads: one. is_owner_thread() is always true.
class FakeEventLoop final : public EventLoop {
 public:
  [[nodiscard]] TimePoint now() const override { return now_; }
  void post(Task task) override { ready_.push_back(std::move(task)); }
  TimerId run_at(TimePoint when, Task task) override {
    const auto id = static_cast<TimerId>(++last_id_);
    timers_.emplace(std::pair{when, last_id_}, std::move(task));
    times_.emplace(last_id_, when);
    return id;
  }
  bool cancel_timer(TimerId timer) override {
    const auto time = times_.find(static_cast<std::uint64_t>(timer));
    if (time == times_.end()) return false;
    timers_.erase({time->second, time->first});
    times_.erase(time);
    return true;
  }
  [[nodiscard]] bool is_owner_thread() const override { return true; }

  /// Runs what is ready now; time does not move. Returns the number of tasks run.
  std::size_t run_ready() {
    std::size_t count = 0;
    for (;;) {
      if (!ready_.empty()) {
        Task task = std::move(ready_.front());
        ready_.pop_front();
        task();
      } else if (!timers_.empty() && timers_.begin()->first.first <= now_) {
        auto node = timers_.extract(timers_.begin());
        times_.erase(node.key().second);
        node.mapped()();
      } else {
        return count;
      }
      ++count;
    }
  }
  /// Runs everything due up to `until`, moving time from timer to timer, and ends at `until`.
  void run_until(TimePoint until) {
    run_ready();
    while (!timers_.empty() && timers_.begin()->first.first <= until) {
      if (timers_.begin()->first.first > now_) now_ = timers_.begin()->first.first;
      run_ready();
    }
    if (until > now_) now_ = until;
  }
  void run_for(Duration span) { run_until(now_ + span); }
  /// Runs until nothing is left to do. Returns false if `tasks_max` tasks did not suffice.
  bool run_to_idle(std::size_t tasks_max = 10'000'000) {
    std::size_t count = run_ready();
    while (!timers_.empty()) {
      if (count > tasks_max) return false;
      if (timers_.begin()->first.first > now_) now_ = timers_.begin()->first.first;
      count += run_ready();
    }
    return true;
  }
  [[nodiscard]] std::size_t timers() const { return timers_.size(); }

 private:
  TimePoint now_{std::chrono::hours(1)};
  std::uint64_t last_id_ = 0;
  std::deque<Task> ready_;
  std::map<std::pair<TimePoint, std::uint64_t>, Task> timers_;
  std::unordered_map<std::uint64_t, TimePoint> times_;  // Of the timers, by id.
};

}  // namespace objectcache
