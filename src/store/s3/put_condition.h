#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "objectcache/error.h"

namespace objectcache::store_s3 {

/// Whether the server honours `If-None-Match: *` on PUT. Some accept the header and overwrite all
/// the same, so it is tried out once, not believed (put_probe.h).
///
/// Threads: any.   Limits: `kWaitersMax` operations wait for the answer.
class PutCondition {
 public:
  static constexpr std::size_t kWaitersMax = 16'384;
  enum class State : std::uint8_t {
    kUnknown,
    kHonoured,
    kIgnored,
    kUnproven,  ///< These credentials may not write the probe: use it, and do not trust it.
  };
  /// Called on the loop given to wait(). An error: it could not be found out.
  using Completion = std::move_only_function<void(Result<State>)>;

  [[nodiscard]] State state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  enum class Turn : std::uint8_t {
    kProbe,  ///< The caller is the one to find out, and to call settle() in any case.
    kWait,   ///< Someone else does.
    kFull,   ///< Too many wait already.
  };
  /// Requires: state() was kUnknown a moment ago. `done` comes later on `loop`, exactly once,
  /// except with kFull. Loops must outlive their completions.
  [[nodiscard]] Turn wait(EventLoop& loop, Completion done) {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kUnknown) {
      loop.post([done = std::move(done), state = state_]() mutable { done(state); });
      return Turn::kWait;
    }
    if (waiters_.size() >= kWaitersMax) return Turn::kFull;
    waiters_.push_back({&loop, std::move(done)});
    return std::exchange(probing_, true) ? Turn::kWait : Turn::kProbe;
  }
  void settle(const Result<State>& found) {
    std::vector<Waiter> waiters;
    {
      const std::lock_guard lock(mutex_);
      if (found) state_ = *found;
      probing_ = false;
      waiters.swap(waiters_);
    }
    for (Waiter& waiter : waiters) {
      waiter.loop->post([done = std::move(waiter.done), found]() mutable { done(found); });
    }
  }

 private:
  struct Waiter {
    EventLoop* loop;
    Completion done;
  };
  mutable std::mutex mutex_;  // guards what follows
  State state_ = State::kUnknown;
  bool probing_ = false;
  std::vector<Waiter> waiters_;
};

}  // namespace objectcache::store_s3
