#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/random.h"
#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::store_s3 {

struct RetryOptions {
  /// Attempts in a row that bring nothing before the operation gives up; 1: never retry.
  std::uint32_t attempts_max = 6;
  /// Attempts of one operation in all: a server that delivers one byte an attempt ends here.
  std::uint32_t attempts_total_max = 60;
  Duration backoff_first = std::chrono::milliseconds(25);
  Duration backoff_max = std::chrono::seconds(5);
};

/// How one attempt ended that did not bring the answer.
struct AttemptFailure {
  Error error;
  std::optional<Duration> retry_after;  ///< What the store asked for.
  bool progressed = false;              ///< It delivered bytes that the next one need not.
};

/// True for errors after which the same request may succeed: the store's own 5xx and throttling,
/// and whatever the connection suffers. Never for a deadline, a cancel or a refusal.
[[nodiscard]] bool is_retried(const Error& error);

/// Decides for one operation whether to try again, and when: exponential backoff with full jitter
/// (a delay drawn uniformly from zero to the current bound), never beyond the deadline. A delay
/// that the store asks for is a lower bound, so a storm of clients still spreads out.
///
/// A pure state machine: time and randomness are arguments.   Threads: one.
class RetryPolicy {
 public:
  explicit RetryPolicy(const RetryOptions& options) : options_(options) {}

  struct Decision {
    bool retry = false;
    TimePoint at{};      ///< Set with `retry`.
    std::string reason;  ///< Why there is no retry, as part of a sentence; else empty.
  };
  /// Called once after each failed attempt. A retry that could only start at or past `deadline` is
  /// refused at once: waiting for it would bring nothing.
  [[nodiscard]] Decision after_failure(TimePoint now, TimePoint deadline,
                                       const AttemptFailure& failure, Random& random);

  /// Failed attempts so far.
  [[nodiscard]] std::uint32_t failures() const { return failures_; }

 private:
  RetryOptions options_;
  std::uint32_t failures_ = 0;
  std::uint32_t barren_ = 0;  ///< Failures since something was delivered last.
};

}  // namespace objectcache::store_s3
