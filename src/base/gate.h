#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "objectcache/types.h"

namespace objectcache {

/// Lets work in while it is open; once closed, refuses new work and drains what is inside. The
/// ordered end of anything that has running operations.
///
/// Threads: any.   Lifetimes: must outlive its passes; wait_drained() is how its owner knows.
class Gate {
 public:
  /// The right to be inside. Leaves when destroyed.
  class Pass {
   public:
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    friend class Gate;
    explicit Pass(Gate* gate) : gate_(gate) {}
    Gate* gate_;
  };

  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Empty once the gate is closed.
  [[nodiscard]] std::optional<Pass> enter() {
    const std::lock_guard lock(mutex_);
    if (closed_) return std::nullopt;
    ++inside_;
    return Pass(this);
  }
  /// No one enters any more. Does not wait. Harmless when repeated.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (inside_ == 0) drained_.notify_all();
  }
  /// Waits until the gate is closed and no one is inside. False: `deadline` came first.
  [[nodiscard]] bool wait_drained(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    return drained_.wait_until(lock, deadline, [this] { return closed_ && inside_ == 0; });
  }
  [[nodiscard]] bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  [[nodiscard]] std::size_t inside() const {
    const std::lock_guard lock(mutex_);
    return inside_;
  }

 private:
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0 && closed_) drained_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable drained_;
  std::size_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace objectcache
