#include "store/s3/circuit_breaker.h"

#include <algorithm>

namespace objectcache::store_s3 {

bool CircuitBreaker::would_admit(TimePoint now) const {
  switch (state_) {
    case BreakerState::kClosed:
      return true;
    case BreakerState::kOpen:
      return now >= open_until_;
    case BreakerState::kHalfOpen:
      return !probe_out_;
  }
  return false;
}

CircuitBreaker::Admission CircuitBreaker::admit(TimePoint now) {
  if (state_ == BreakerState::kClosed) return {.allowed = true, .probe = false, .retry_at = {}};
  if (!would_admit(now)) {
    // While a probe is out nobody knows when it ends; `now` says "soon" without promising more.
    return {.allowed = false, .probe = false, .retry_at = std::max(now, open_until_)};
  }
  state_ = BreakerState::kHalfOpen;
  probe_out_ = true;
  return {.allowed = true, .probe = true, .retry_at = {}};
}

void CircuitBreaker::on_success(TimePoint, bool probe) {
  if (probe) probe_out_ = false;
  // Also a late answer to a request from before it opened shows that the server lives.
  state_ = BreakerState::kClosed;
  failures_ = 0;
  open_span_ = Duration::zero();
}

void CircuitBreaker::on_failure(TimePoint now, bool probe) {
  if (probe) {
    probe_out_ = false;
    if (state_ == BreakerState::kHalfOpen) open(now, std::min(open_span_ * 2, options_.open_max));
    return;
  }
  if (state_ != BreakerState::kClosed) return;
  if (failures_ == 0) first_failure_ = now;
  ++failures_;
  if (failures_ >= options_.failures_min && now - first_failure_ >= options_.failing_for) {
    open(now, options_.open_first);
  }
}

void CircuitBreaker::on_unknown(bool probe) {
  if (probe) probe_out_ = false;  // Half open still: the next request becomes the probe.
}

void CircuitBreaker::open(TimePoint now, Duration span) {
  state_ = BreakerState::kOpen;
  open_span_ = span;
  open_until_ = now + span;
  ++times_opened_;
}

}  // namespace objectcache::store_s3
