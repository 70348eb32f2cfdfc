#include "plan/prefix_search.h"

#include <algorithm>

namespace objectcache::plan {
namespace {

/// Adds to `out` indices of [begin, end), so that at most `gap` unprobed ones lie between two
/// neighbours, and between them and both ends.
void spread(std::uint32_t begin, std::uint32_t end, std::uint32_t gap,
            std::vector<std::uint32_t>& out) {
  const std::uint64_t length = end - begin;
  const std::uint64_t count = length / (std::uint64_t{gap} + 1);
  for (std::uint64_t i = 1; i <= count; ++i) {
    out.push_back(begin + static_cast<std::uint32_t>(i * (length + 1) / (count + 1)) - 1);
  }
}

}  // namespace

PrefixSearch::PrefixSearch(const Options& options)
    : probes_max_(std::max(options.probes_max, 2U)),
      hint_(options.hint),
      present_(std::min({options.at_least, options.count, kCountMax})),
      absent_(std::min(options.count, kCountMax)) {}

bool PrefixSearch::done() const {
  if (present_ == absent_) return true;
  return !round_.empty() && round_.front().index == present_ && round_.front().present == false;
}

/// The candidates are [present_, absent_). Both ends are probed in the first round, since "all"
/// and "nothing" are the common answers; so are the two sides of the hint. The rest is spread as
/// evenly as the number of probes allows.
std::vector<std::uint32_t> PrefixSearch::choose() const {
  const std::uint32_t span = absent_ - present_;
  std::vector<std::uint32_t> fixed;
  if (span <= probes_max_) {
    for (std::uint32_t i = present_; i < absent_; ++i) fixed.push_back(i);
    return fixed;
  }
  if (rounds_ == 0) {
    fixed = {present_, absent_ - 1};
    const bool hinted = hint_ && *hint_ > present_ && *hint_ < absent_ && probes_max_ >= 4;
    if (hinted) fixed.insert(fixed.end(), {*hint_ - 1, *hint_});
    std::ranges::sort(fixed);
    const auto repeated = std::ranges::unique(fixed);
    fixed.erase(repeated.begin(), repeated.end());
  }
  // The smallest gap whose probes fit. One division gives it but for rounding on each side of the
  // fixed probes; the loop mends that in a few steps.
  const std::uint32_t free = probes_max_ - static_cast<std::uint32_t>(fixed.size());
  for (std::uint32_t gap = (span - static_cast<std::uint32_t>(fixed.size())) / (free + 1);; ++gap) {
    std::vector<std::uint32_t> out = fixed;
    std::uint32_t begin = present_;
    for (const std::uint32_t index : fixed) {
      spread(begin, index, gap, out);
      begin = index + 1;
    }
    spread(begin, absent_, gap, out);
    if (out.size() > probes_max_) continue;
    std::ranges::sort(out);
    return out;
  }
}

std::vector<std::uint32_t> PrefixSearch::next_probes() {
  if (outstanding_ > 0 || done()) return {};
  std::vector<std::uint32_t> indices = choose();
  round_.clear();
  for (const std::uint32_t index : indices) round_.push_back({.index = index, .present = {}});
  outstanding_ = static_cast<std::uint32_t>(indices.size());
  probes_ += outstanding_;
  ++rounds_;
  return indices;
}

void PrefixSearch::report(std::uint32_t index, bool present) {
  const auto probe = std::ranges::lower_bound(round_, index, {}, &Probe::index);
  if (probe == round_.end() || probe->index != index || probe->present.has_value()) return;
  probe->present = present;
  --outstanding_;
  if (done()) {
    absent_ = present_;
    outstanding_ = 0;
    round_.clear();
  } else if (outstanding_ == 0) {
    end_round();
  }
}

void PrefixSearch::end_round() {
  for (const Probe& probe : round_) {
    if (!*probe.present) {
      absent_ = probe.index;
      break;
    }
    present_ = probe.index + 1;
  }
  round_.clear();
}

}  // namespace objectcache::plan
