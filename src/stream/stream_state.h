#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "objectcache/layer_stream.h"

namespace objectcache::stream {

/// What a stream shows to the world: the one part of it that other threads see. The stream's loop
/// writes, anyone reads.
///
/// Threads: as marked. Limits: one eventfd, made when it is first asked for.
class StreamState {
 public:
  StreamState(std::uint32_t layers, TimePoint opened);
  ~StreamState();
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  // Any thread.
  [[nodiscard]] std::uint32_t layers() const noexcept { return layers_; }
  [[nodiscard]] std::uint32_t ready_layers() const noexcept {
    return ready_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  [[nodiscard]] Result<void> wait_ready(std::uint32_t layer, TimePoint deadline);
  [[nodiscard]] bool wait_ended(std::optional<TimePoint> deadline);
  [[nodiscard]] std::optional<StreamFailure> failure() const;
  [[nodiscard]] int event_fd() const noexcept;
  [[nodiscard]] StreamStats stats() const;

  // The stream's loop.
  void count_request(bool is_reread) noexcept;
  void count_bytes(std::uint64_t bytes) noexcept;
  void count_scratch(std::uint64_t taken, std::uint64_t given_back) noexcept;
  void first_byte_at(TimePoint now) noexcept;
  /// Announces layers up to (not including) `ready`. All that the loop's thread, or another one
  /// before it, wrote to them is visible to whoever then sees them ready.
  void publish_ready(std::uint32_t ready, TimePoint now);
  /// Requires: none was published before.
  void publish_failure(StreamFailure failure);
  void publish_ended();

 private:
  void signal() noexcept;

  const std::uint32_t layers_;
  const TimePoint opened_;
  std::atomic<std::uint32_t> ready_{0};
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> rereads_{0};
  std::atomic<std::int64_t> first_byte_ns_{0};
  std::atomic<std::uint64_t> scratch_peak_{0};
  std::uint64_t scratch_ = 0;  // Loop only.

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::optional<StreamFailure> failure_;
  std::vector<Duration> layer_ready_;
  std::vector<Duration> layer_waited_;
  mutable int event_fd_ = -1;
};

}  // namespace objectcache::stream
