#pragma once

#include <chrono>

#include "base/event_loop.h"

namespace objectcache {

/// The machine's time of day.
///
/// Threads: any.
class SystemWallClock final : public WallClock {
 public:
  [[nodiscard]] std::chrono::system_clock::time_point now() const override {
    return std::chrono::system_clock::now();
  }
};

}  // namespace objectcache
