#pragma once

#include <cstdint>

#include "objectcache/types.h"

namespace objectcache::store_s3 {

struct BreakerOptions {
  /// It opens when nothing has succeeded for `failing_for` and at least `failures_min` attempts
  /// failed meanwhile: neither one burst of resets nor two slow failures are a dead server.
  std::uint32_t failures_min = 6;
  Duration failing_for = std::chrono::milliseconds(500);
  Duration open_first = std::chrono::milliseconds(500);
  Duration open_max = std::chrono::seconds(15);  ///< Doubles up to this while probes fail.
};

enum class BreakerState : std::uint8_t { kClosed, kOpen, kHalfOpen };

/// Keeps requests away from an address that does not answer, so that callers fail at once and can
/// recompute. Open, it refuses; after a pause it lets a single probe through (half open), whose
/// result closes it or opens it for twice as long.
///
/// What counts as success and failure is the caller's business (shared_policies.h).
///
/// A pure state machine.   Threads: one. Times that step back a little are taken as they come.
class CircuitBreaker {
 public:
  explicit CircuitBreaker(const BreakerOptions& options) : options_(options) {}

  struct Admission {
    bool allowed = false;
    bool probe = false;    ///< Report its end with this flag set.
    TimePoint retry_at{};  ///< When refused: ask again no earlier.
  };
  [[nodiscard]] Admission admit(TimePoint now);
  /// What admit() would say; takes no probe.
  [[nodiscard]] bool would_admit(TimePoint now) const;

  void on_success(TimePoint now, bool probe);
  void on_failure(TimePoint now, bool probe);
  /// The attempt ended without telling anything about the server (cancelled, past its deadline
  /// for the caller's own reason).
  void on_unknown(bool probe);

  [[nodiscard]] BreakerState state() const { return state_; }
  [[nodiscard]] TimePoint retry_at() const { return open_until_; }
  [[nodiscard]] std::uint64_t times_opened() const { return times_opened_; }

 private:
  void open(TimePoint now, Duration span);

  BreakerOptions options_;
  BreakerState state_ = BreakerState::kClosed;
  std::uint32_t failures_ = 0;  ///< Since the last success.
  TimePoint first_failure_{};   ///< Of those.
  TimePoint open_until_{};
  Duration open_span_{};
  bool probe_out_ = false;
  std::uint64_t times_opened_ = 0;
};

}  // namespace objectcache::store_s3
