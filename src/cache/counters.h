#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::cache {

/// What the rooms below cannot count: the figures of CacheStats that are about chunks and streams.
/// Threads: any.
struct Counters {
  std::atomic<std::uint64_t> corrupt_found{0};
  std::atomic<std::uint64_t> streams_opened{0};
  std::atomic<std::uint64_t> streams_failed{0};
  std::atomic<std::uint64_t> chunks_published{0};
  std::atomic<std::uint64_t> chunks_already_present{0};
  std::atomic<std::uint64_t> chunks_dropped{0};

  void count_error(ErrorCode code) {
    const auto at = static_cast<std::size_t>(code);
    if (at < errors_.size()) errors_[at].fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t errors(ErrorCode code) const {
    const auto at = static_cast<std::size_t>(code);
    return at < errors_.size() ? errors_[at].load(std::memory_order_relaxed) : 0;
  }
  void add_layer_waits(const std::vector<Duration>& waited) {
    const std::scoped_lock lock(mutex_);
    if (layer_wait_total_.size() < waited.size()) layer_wait_total_.resize(waited.size());
    for (std::size_t i = 0; i < waited.size(); ++i) layer_wait_total_[i] += waited[i];
  }
  [[nodiscard]] std::vector<Duration> layer_wait_total() const {
    const std::scoped_lock lock(mutex_);
    return layer_wait_total_;
  }

  static constexpr std::uint8_t kLastErrorCode = static_cast<std::uint8_t>(ErrorCode::kInternal);

 private:
  std::array<std::atomic<std::uint64_t>, kLastErrorCode + 1> errors_{};
  mutable std::mutex mutex_;
  std::vector<Duration> layer_wait_total_;
};

}  // namespace objectcache::cache
