#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "objectcache/layer_stream.h"
#include "objectcache/types.h"
#include "plan/read_planner.h"

namespace objectcache::cache {

/// What the streams of this process have measured of the way to the store: the planner's input.
///
/// Concurrent streams share the link, so the rate is that of the fastest of late: an old record
/// fades by a tenth with each stream that ends.
///
/// Threads: any.
class StoreSpeed {
 public:
  void learn(const StreamStats& stats) {
    if (stats.layer_ready.empty() || stats.bytes < kBytesMin) return;
    const Duration last = stats.layer_ready.back();
    if (last <= stats.first_byte) return;
    const double seconds = std::chrono::duration<double>(last - stats.first_byte).count();
    const double rate = static_cast<double>(stats.bytes) / seconds;
    const std::scoped_lock lock(mutex_);
    first_byte_ = known_ ? (first_byte_ * 7 + stats.first_byte) / 8 : stats.first_byte;
    bytes_per_s_ = known_ ? std::max(rate, bytes_per_s_ * 0.9) : rate;
    known_ = true;
  }
  [[nodiscard]] plan::StoreCharacter character(std::uint32_t connections) const {
    const std::scoped_lock lock(mutex_);
    plan::StoreCharacter out;
    out.connections = connections;
    out.bytes_per_s = bytes_per_s_;
    out.first_byte = first_byte_;
    return out;
  }

 private:
  static constexpr std::uint64_t kBytesMin = 1 << 20;  ///< Less tells more of latency than of rate.

  mutable std::mutex mutex_;
  bool known_ = false;
  // Until something was measured: a fast store in the same building. Too fast a guess makes reads
  // narrower than need be, which costs requests but never a layer's time.
  double bytes_per_s_ = 1e9;
  Duration first_byte_ = std::chrono::milliseconds(5);
};

}  // namespace objectcache::cache
