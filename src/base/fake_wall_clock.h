#pragma once

#include "base/event_loop.h"

namespace objectcache {

/// A time of day that moves only when the test says so.
///
/// Threads: one.
class FakeWallClock final : public WallClock {
 public:
  explicit FakeWallClock(std::chrono::system_clock::time_point start) : now_(start) {}
  [[nodiscard]] std::chrono::system_clock::time_point now() const override { return now_; }
  void set(std::chrono::system_clock::time_point now) { now_ = now; }
  void advance(std::chrono::system_clock::duration span) { now_ += span; }

 private:
  std::chrono::system_clock::time_point now_;
};

}  // namespace objectcache
