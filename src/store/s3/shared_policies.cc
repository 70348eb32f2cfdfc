#include "store/s3/shared_policies.h"

#include <algorithm>

#include <fmt/format.h>

namespace objectcache::store_s3 {
namespace {

/// How far back the load of the link is looked at: short enough to notice that it has filled up.
constexpr Duration kLoadWindow = std::chrono::milliseconds(250);

}  // namespace

SharedPolicies::SharedPolicies(const S3Options& options)
    : link_bytes_per_second_(options.link_bytes_per_second),
      limiter_(options.rate),
      hedge_(options.hedge) {
  for (const s3::Endpoint& endpoint : options.endpoints) {
    endpoints_.push_back({endpoint.url(), CircuitBreaker(options.breaker), {}});
  }
}

CircuitBreaker::Admission SharedPolicies::admit(std::size_t endpoint, TimePoint now) {
  const std::lock_guard lock(mutex_);
  return endpoints_[endpoint].breaker.admit(now);
}

bool SharedPolicies::would_admit(std::size_t endpoint, TimePoint now) const {
  const std::lock_guard lock(mutex_);
  return endpoints_[endpoint].breaker.would_admit(now);
}

void SharedPolicies::on_attempt_end(std::size_t endpoint, bool probe, Health health, TimePoint now,
                                    std::string_view what) {
  const std::lock_guard lock(mutex_);
  EndpointHealth& it = endpoints_[endpoint];
  switch (health) {
    case Health::kAlive:
      it.breaker.on_success(now, probe);
      limiter_.on_answered(now);
      break;
    case Health::kThrottled:
      it.breaker.on_success(now, probe);
      limiter_.on_throttled(now);
      break;
    case Health::kFailing:
      it.breaker.on_failure(now, probe);
      it.last_failure = what;
      break;
    case Health::kUnknown:
      it.breaker.on_unknown(probe);
      break;
  }
}

std::string SharedPolicies::refusal(TimePoint now) const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const EndpointHealth& it : endpoints_) {
    if (!out.empty()) out += "; ";
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(it.breaker.retry_at() - now).count();
    out += fmt::format("{} does not answer (last: {}) and ", it.url, it.last_failure);
    out += left > 0 ? fmt::format("will be tried again in {} ms", left)
                    : std::string("is being tried again right now");
  }
  return out;
}

std::optional<TimePoint> SharedPolicies::reserve(TimePoint now, TimePoint latest) {
  const std::lock_guard lock(mutex_);
  return limiter_.reserve(now, latest);
}

double SharedPolicies::requests_per_second() const {
  const std::lock_guard lock(mutex_);
  return limiter_.requests_per_second();
}

void SharedPolicies::on_first_byte(Duration waited) {
  const std::lock_guard lock(mutex_);
  latency_.on_first_byte(waited);
}

void SharedPolicies::on_bytes(TimePoint now, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  latency_.on_bytes(now, bytes);
  hedge_.on_bytes(bytes);
}

std::optional<Duration> SharedPolicies::hedge_wait(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return hedge_.wait(bytes, latency_.samples(), latency_.first_byte_quantile(hedge_.quantile()));
}

bool SharedPolicies::may_hedge(TimePoint now, std::uint64_t bytes, std::uint32_t requests_running,
                               std::uint32_t connections) {
  const std::lock_guard lock(mutex_);
  const HedgeMoment moment{.bytes_per_second = latency_.bytes_per_second(now, kLoadWindow),
                           .link_bytes_per_second = link_bytes_per_second_ > 0
                                                        ? link_bytes_per_second_
                                                        : latency_.bytes_per_second_peak(now),
                           .requests_running = requests_running,
                           .connections = connections};
  return hedge_.may_start(bytes, moment);
}

void SharedPolicies::on_hedge_end(std::uint64_t unused_bytes) {
  const std::lock_guard lock(mutex_);
  hedge_.finish(unused_bytes);
}

void SharedPolicies::copy_to(S3Stats& out, TimePoint now) const {
  const std::lock_guard lock(mutex_);
  for (const EndpointHealth& it : endpoints_) {
    out.endpoints.push_back({it.url, it.breaker.state(), it.breaker.times_opened()});
  }
  out.requests_per_second_limit = limiter_.requests_per_second();
  out.first_byte_p50 = latency_.first_byte_quantile(0.5).value_or(Duration::zero());
  out.first_byte_p99 = latency_.first_byte_quantile(0.99).value_or(Duration::zero());
  out.bytes_per_second = latency_.bytes_per_second(now);
  out.bytes_per_second_peak = latency_.bytes_per_second_peak(now);
}

}  // namespace objectcache::store_s3
