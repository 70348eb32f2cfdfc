#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "objectcache/error.h"
#include "store/s3/circuit_breaker.h"
#include "store/s3/hedge_policy.h"
#include "store/s3/latency_tracker.h"
#include "store/s3/rate_limiter.h"
#include "store/s3/s3_options.h"
#include "store/s3/s3_stats.h"

namespace objectcache::store_s3 {

/// What one attempt said about the endpoint that it was sent to.
enum class Health : std::uint8_t {
  kAlive,      ///< An answer, be it an error of ours.
  kThrottled,  ///< Alive, and asks for fewer requests.
  kFailing,    ///< No answer, a broken one, or a 5xx that is not in S3's words.
  kUnknown,    ///< Neither: ended from our side, broke off in a body, or a fault inside S3.
};

/// The policies that hold for a store as a whole, shared by its loops: a breaker for each endpoint,
/// the request rate, the measured latency and the hedge budget.
///
/// Threads: any. One lock, held for less than a microsecond (some for a sort of 1,024 numbers).
class SharedPolicies {
 public:
  explicit SharedPolicies(const S3Options& options);

  /// --- breakers; `endpoint` is an index into S3Options::endpoints.
  [[nodiscard]] CircuitBreaker::Admission admit(std::size_t endpoint, TimePoint now);
  [[nodiscard]] bool would_admit(std::size_t endpoint, TimePoint now) const;
  /// `what` describes a failure, for refusals that follow.
  void on_attempt_end(std::size_t endpoint, bool probe, Health health, TimePoint now,
                      std::string_view what);
  /// Why no endpoint is admitted: names each, what was wrong, and when it is tried again.
  [[nodiscard]] std::string refusal(TimePoint now) const;

  /// --- request rate
  [[nodiscard]] std::optional<TimePoint> reserve(TimePoint now, TimePoint latest);
  [[nodiscard]] double requests_per_second() const;

  /// --- latency, hedges
  void on_first_byte(Duration waited);
  void on_bytes(TimePoint now, std::uint64_t bytes);
  [[nodiscard]] std::optional<Duration> hedge_wait(std::uint64_t bytes);
  [[nodiscard]] bool may_hedge(TimePoint now, std::uint64_t bytes, std::uint32_t requests_running,
                               std::uint32_t connections);
  void on_hedge_end(std::uint64_t unused_bytes);

  void copy_to(S3Stats& out, TimePoint now) const;

 private:
  struct EndpointHealth {
    std::string url;
    CircuitBreaker breaker;
    std::string last_failure;
  };

  const double link_bytes_per_second_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<EndpointHealth> endpoints_;
  RateLimiter limiter_;
  mutable LatencyTracker latency_;
  HedgePolicy hedge_;
};

}  // namespace objectcache::store_s3
