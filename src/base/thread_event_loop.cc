#include "base/thread_event_loop.h"

#include <algorithm>
#include <future>

namespace objectcache {

ThreadEventLoop::ThreadEventLoop() : owner_(std::this_thread::get_id()) {}
ThreadEventLoop::~ThreadEventLoop() = default;

bool ThreadEventLoop::is_owner_thread() const {
  return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void ThreadEventLoop::post(Task task) {
  // Notified under the lock: after it the waiting thread may end and destroy the loop.
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(task));
  wake_.notify_one();
}

TimerId ThreadEventLoop::run_at(TimePoint when, Task task) {
  const std::uint64_t id = ++last_timer_;
  timers_.emplace(std::pair{when, id}, std::move(task));
  timer_times_.emplace(id, when);
  return static_cast<TimerId>(id);
}

bool ThreadEventLoop::cancel_timer(TimerId timer) {
  const auto it = timer_times_.find(static_cast<std::uint64_t>(timer));
  if (it == timer_times_.end()) return false;
  // The task is destroyed last: its destructor may come back here.
  const auto node = timers_.extract(std::pair{it->second, it->first});
  timer_times_.erase(it);
  return true;
}

void ThreadEventLoop::step(TimePoint until) {
  if (running_.empty()) {
    std::unique_lock lock(mutex_);
    if (posted_.empty() && (timers_.empty() || timers_.begin()->first.first > now())) {
      const TimePoint wake_at =
          timers_.empty() ? until : std::min(until, timers_.begin()->first.first);
      const auto something = [this] { return !posted_.empty() || stopped_.load(); };
      if (wake_at == TimePoint::max()) {
        wake_.wait(lock, something);  // wait_until(max) overflows in some clocks.
      } else {
        wake_.wait_until(lock, wake_at, something);
      }
    }
    running_.swap(posted_);
    lock.unlock();
    std::reverse(running_.begin(), running_.end());
  }
  if (!timers_.empty() && timers_.begin()->first.first <= now()) {
    auto node = timers_.extract(timers_.begin());
    timer_times_.erase(node.key().second);
    node.mapped()();
    return;
  }
  if (!running_.empty()) {
    Task task = std::move(running_.back());
    running_.pop_back();
    task();
  }
}

void ThreadEventLoop::run() {
  owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (!stopped_.load()) step(TimePoint::max());
}

bool ThreadEventLoop::run_until(const std::function<bool()>& ready, TimePoint until) {
  while (!ready()) {
    if (now() >= until) return false;
    step(until);
  }
  return true;
}

void ThreadEventLoop::stop() {
  const std::lock_guard lock(mutex_);
  stopped_.store(true);
  wake_.notify_one();
}

EventLoopThread::EventLoopThread() : thread_([this] { loop_.run(); }) {
  // Until the thread owns the loop, is_owner_thread() would name this one.
  std::promise<void> running;
  loop_.post([&running] { running.set_value(); });
  running.get_future().wait();
}

EventLoopThread::~EventLoopThread() {
  loop_.stop();
  thread_.join();
}

}  // namespace objectcache
