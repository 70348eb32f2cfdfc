#include "plan/pass_model.h"

#include <algorithm>
#include <cmath>

namespace objectcache::plan {

PassModel::PassModel(const ReadJob& job, const StoreCharacter& store)
    : first_layer_(job.first_layer), chunks_(job.chunks) {
  prefix_.reserve(job.slice_bytes.size() + 1);
  prefix_.push_back(0);
  for (std::size_t layer = 0; layer < job.slice_bytes.size(); ++layer) {
    const double header = layer == 0 ? static_cast<double>(job.header_bytes) : 0;
    prefix_.push_back(prefix_.back() + header + static_cast<double>(job.slice_bytes[layer]));
  }
  const double connections = store.connections;
  rounds_ = std::ceil(chunks_ / connections);
  last_round_ = chunks_ - (rounds_ - 1) * connections;
  first_byte_s_ = std::chrono::duration<double>(store.first_byte).count();
  requests_s_ = store.requests_per_s > 0 ? chunks_ / store.requests_per_s : 0;

  const double link = store.bytes_per_s;
  const double one = store.connection_bytes_per_s > 0 ? store.connection_bytes_per_s : link;
  const double idle_share = std::floor(connections / chunks_);
  const double wanted = std::ceil(link / (chunks_ * one));
  lanes_ = static_cast<std::uint32_t>(std::clamp(std::min(idle_share, wanted), 1.0, 1024.0));
  const double share = link / lanes_;
  rate_ = std::min(share, std::min(chunks_, connections) * one);
  last_rate_ = std::min(share, last_round_ * one);
  hides_first_byte_ = lanes_ == 1 && connections >= 2 * chunks_;
}

double PassModel::transfer_s(std::uint32_t first, std::uint32_t width) const {
  return chunks_ * (prefix_[first + width] - prefix_[first]) / rate_;
}

double PassModel::ready(double start, std::uint32_t first, std::uint32_t width, std::uint32_t layer,
                        bool first_byte) const {
  const double full_rounds =
      (chunks_ - last_round_) * (prefix_[first + width] - prefix_[first]) / rate_;
  const double last_round = last_round_ * (prefix_[layer + 1] - prefix_[first]) / last_rate_;
  const double first_bytes = first_byte ? rounds_s() : (rounds_ - 1) * first_byte_s_;
  return start + std::max(full_rounds + last_round + first_bytes,
                          requests_s_ > 0 ? requests_s_ + first_byte_s_ : 0);
}

double PassClock::start() const { return *std::ranges::min_element(free_); }

double PassClock::ready(std::uint32_t first, std::uint32_t width, std::uint32_t layer) const {
  return model_.ready(start(), first, width, layer, !any_ || !model_.hides_first_byte());
}

void PassClock::add(std::uint32_t first, std::uint32_t width, std::vector<double>& ready_out) {
  for (std::uint32_t layer = first; layer < first + width; ++layer) {
    ready_out.push_back(ready(first, width, layer));
  }
  *std::ranges::min_element(free_) = ready_out.back();
  any_ = true;
}

}  // namespace objectcache::plan
