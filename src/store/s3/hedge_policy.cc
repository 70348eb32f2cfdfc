#include "store/s3/hedge_policy.h"

#include <algorithm>

namespace objectcache::store_s3 {

std::optional<Duration> HedgePolicy::wait(std::uint64_t bytes, std::size_t samples,
                                          std::optional<Duration> quantile) const {
  if (!options_.enabled || bytes > options_.read_bytes_max) return std::nullopt;
  if (!quantile || samples < options_.samples_min) return std::nullopt;
  return std::max(*quantile, options_.wait_min);
}

bool HedgePolicy::may_start(std::uint64_t bytes, const HedgeMoment& moment) {
  if (!options_.enabled || bytes > options_.read_bytes_max) return false;
  if (running_ >= options_.running_max) return false;
  if (static_cast<double>(bytes) > credit_) return false;
  // Every connection busy: the second request would wait behind the first ones.
  if (moment.requests_running >= moment.connections) return false;
  // An unknown link may be full; only a rate clearly below what it carried before is not.
  if (moment.bytes_per_second >= options_.saturated_part * moment.link_bytes_per_second) {
    return false;
  }
  credit_ -= static_cast<double>(bytes);
  ++running_;
  return true;
}

void HedgePolicy::finish(std::uint64_t unused_bytes) {
  if (running_ > 0) --running_;
  credit_ = std::min(credit_ + static_cast<double>(unused_bytes),
                     static_cast<double>(options_.credit_bytes_max));
}

void HedgePolicy::on_bytes(std::uint64_t bytes) {
  credit_ = std::min(credit_ + static_cast<double>(bytes) * options_.bytes_part_max,
                     static_cast<double>(options_.credit_bytes_max));
}

}  // namespace objectcache::store_s3
