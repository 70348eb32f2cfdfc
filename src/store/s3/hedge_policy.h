#pragma once

#include <cstdint>
#include <optional>

#include "objectcache/types.h"

namespace objectcache::store_s3 {

struct HedgeOptions {
  bool enabled = true;
  double quantile = 0.99;         ///< Of the first-byte times; what takes longer is suspect.
  std::size_t samples_min = 100;  ///< Before that many answers nothing is called unusual.
  Duration wait_min = std::chrono::milliseconds(10);  ///< Never hedge sooner.
  double bytes_part_max = 0.02;                       ///< Of the bytes read without hedging.
  std::uint64_t credit_bytes_max = 64ULL << 20;
  std::uint64_t read_bytes_max = 8ULL << 20;  ///< Longer reads are not hedged: the buffer.
  std::uint32_t running_max = 4;
  double saturated_part = 0.7;  ///< Of the link's rate: from here on it counts as full.
};

/// What the policy has to know of the moment; taken from the latency tracker and the connections.
struct HedgeMoment {
  double bytes_per_second = 0;
  double link_bytes_per_second = 0;  ///< Configured, else the best seen. 0: unknown.
  std::uint32_t requests_running = 0;
  std::uint32_t connections = 0;
};

/// Decides whether a read that has no first byte yet is sent a second time. A hedge helps against
/// one slow server or connection and makes an overload worse, so hedges stay below a fixed part
/// of all bytes and stop when the link, or the set of connections, is full.
///
/// A pure state machine.   Threads: one.
class HedgePolicy {
 public:
  explicit HedgePolicy(const HedgeOptions& options) : options_(options) {}

  /// How long to wait for the first byte of a read of `bytes` before may_start() is asked; empty:
  /// this read is never hedged. `quantile` is that of Options::quantile, over `samples` answers.
  [[nodiscard]] std::optional<Duration> wait(std::uint64_t bytes, std::size_t samples,
                                             std::optional<Duration> quantile) const;
  /// Takes the bytes from the budget if it says yes; finish() must follow.
  [[nodiscard]] bool may_start(std::uint64_t bytes, const HedgeMoment& moment);
  /// `unused_bytes` of a hedge that was closed early go back into the budget.
  void finish(std::uint64_t unused_bytes);
  /// Bytes that arrived by ordinary reads.
  void on_bytes(std::uint64_t bytes);

  [[nodiscard]] double quantile() const { return options_.quantile; }
  [[nodiscard]] std::uint32_t running() const { return running_; }
  [[nodiscard]] std::uint64_t credit_bytes() const { return static_cast<std::uint64_t>(credit_); }

 private:
  HedgeOptions options_;
  double credit_ = 0;
  std::uint32_t running_ = 0;
};

}  // namespace objectcache::store_s3
