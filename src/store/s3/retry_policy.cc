#include "store/s3/retry_policy.h"

#include <algorithm>

#include <fmt/format.h>

namespace objectcache::store_s3 {
namespace {

Duration backoff_bound(const RetryOptions& options, std::uint32_t barren) {
  Duration bound = options.backoff_first;
  for (std::uint32_t i = 1; i < barren && bound < options.backoff_max; ++i) bound *= 2;
  return std::min(bound, options.backoff_max);
}

}  // namespace

bool is_retried(const Error& error) { return is_retryable(error.code); }

RetryPolicy::Decision RetryPolicy::after_failure(TimePoint now, TimePoint deadline,
                                                 const AttemptFailure& failure, Random& random) {
  ++failures_;
  barren_ = failure.progressed ? 1 : barren_ + 1;
  if (!is_retried(failure.error)) return {};
  if (barren_ >= options_.attempts_max || failures_ >= options_.attempts_total_max) {
    return {
        .retry = false, .at = {}, .reason = fmt::format("given up after {} attempts", failures_)};
  }
  const auto bound = static_cast<std::uint64_t>(backoff_bound(options_, barren_).count());
  const Duration jittered{static_cast<Duration::rep>(random.below(bound + 1))};
  const Duration asked = std::clamp(failure.retry_after.value_or(Duration::zero()),
                                    Duration::zero(), Duration(std::chrono::hours(24)));
  // What the store asks for is added to the jitter, not maximised with it: otherwise every client
  // that was turned away in one second would come back in the same one.
  const TimePoint at = now + asked + jittered;
  if (at >= deadline) {
    return {.retry = false,
            .at = {},
            .reason = fmt::format("after {} attempts the deadline leaves no time for another",
                                  failures_)};
  }
  return {.retry = true, .at = at, .reason = {}};
}

}  // namespace objectcache::store_s3
