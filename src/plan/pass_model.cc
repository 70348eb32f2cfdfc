#include "plan/pass_model.h"

#include <algorithm>
#include <cmath>

namespace objectcache::plan {

PassModel::PassModel(const ReadJob& job, const StoreCharacter& store)
    : first_layer_(job.first_layer),
      chunks_(job.chunks),
      connections_(store.connections),
      exposed_(store.first_byte_exposed) {
  prefix_.reserve(job.slice_bytes.size() + 1);
  prefix_.push_back(0);
  for (std::size_t layer = 0; layer < job.slice_bytes.size(); ++layer) {
    const double header = layer == 0 ? static_cast<double>(job.header_bytes) : 0;
    prefix_.push_back(prefix_.back() + header + static_cast<double>(job.slice_bytes[layer]));
  }
  rounds_ = std::ceil(chunks_ / connections_);
  last_round_ = chunks_ - (rounds_ - 1) * connections_;
  first_byte_s_ = std::chrono::duration<double>(store.first_byte).count();
  requests_s_ = store.requests_per_s > 0 ? chunks_ / store.requests_per_s : 0;

  const double link = store.bytes_per_s;
  const double one = store.connection_bytes_per_s > 0 ? store.connection_bytes_per_s : link;
  const double idle_share = std::floor(connections_ / chunks_);
  const double wanted = std::ceil(link / (chunks_ * one));
  lanes_ = static_cast<std::uint32_t>(std::clamp(std::min(idle_share, wanted), 1.0, 1024.0));
  const double share = link / lanes_;
  rate_ = std::min(share, std::min(chunks_, connections_) * one);
  last_rate_ = std::min(share, last_round_ * one);
  passes_in_flight_ = lanes_ == 1 ? std::max(1.0, idle_share) : 1;
}

double PassModel::transfer_s(std::uint32_t first, std::uint32_t width) const {
  return chunks_ * (prefix_[first + width] - prefix_[first]) / rate_;
}

double PassModel::waits_s(std::uint32_t first, std::uint32_t width, bool first_pass) const {
  if (passes_in_flight_ > 1) {
    // The requests of the next passes are on their way while this one transfers.
    const double meanwhile = (passes_in_flight_ - 1) * transfer_s(first, width);
    if (first_pass) return first_byte_s_;
    return std::max(0.0, first_byte_s_ - meanwhile) / passes_in_flight_;
  }
  // While one connection waits, the others transfer, unless all of them wait at once.
  const double request_s = (prefix_[first + width] - prefix_[first]) / rate_;
  const double at_least =
      std::max(0.0, first_byte_s_ - (std::min(connections_, chunks_) - 1) * request_s);
  const double a_round = at_least + exposed_ * (first_byte_s_ - at_least);
  return first_pass ? first_byte_s_ + (rounds_ - 1) * a_round : rounds_ * a_round;
}

double PassModel::ready(double start, std::uint32_t first, std::uint32_t width, std::uint32_t layer,
                        bool first_pass) const {
  const double full_rounds =
      (chunks_ - last_round_) * (prefix_[first + width] - prefix_[first]) / rate_;
  const double last_round = last_round_ * (prefix_[layer + 1] - prefix_[first]) / last_rate_;
  return start + std::max(full_rounds + last_round + waits_s(first, width, first_pass),
                          requests_s_ > 0 ? requests_s_ + first_byte_s_ : 0);
}

double PassClock::start() const { return *std::ranges::min_element(free_); }

double PassClock::ready(std::uint32_t first, std::uint32_t width, std::uint32_t layer) const {
  // Each lane waits for the first bytes of its first pass.
  return model_.ready(start(), first, width, layer, passes_ < model_.lanes());
}

void PassClock::add(std::uint32_t first, std::uint32_t width, std::vector<double>& ready_out) {
  for (std::uint32_t layer = first; layer < first + width; ++layer) {
    ready_out.push_back(ready(first, width, layer));
  }
  *std::ranges::min_element(free_) = ready_out.back();
  ++passes_;
}

}  // namespace objectcache::plan
