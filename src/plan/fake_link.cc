#include "plan/fake_link.h"

#include <algorithm>
#include <limits>

namespace objectcache::plan {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// A request on a connection.
struct Transfer {
  const RangeRead* read = nullptr;
  double first_byte_at = 0;
  std::uint32_t layer = 0;  ///< The one that is arriving.
  double left = 0;          ///< Bytes of it still to come.
  double rate = 0;
};

class Simulation {
 public:
  Simulation(const std::vector<RangeRead>& reads, const ReadJob& job, const StoreCharacter& store,
             PassRule rule, double jitter)
      : reads_(reads),
        job_(job),
        store_(store),
        rule_(rule),
        jitter_(jitter),
        ready_(job.slice_bytes.size() - job.first_layer, 0.0) {}

  std::vector<double> run() {
    issue();
    while (!busy_.empty()) {
      share();
      step();
      issue();
    }
    for (std::size_t i = 1; i < ready_.size(); ++i) ready_[i] = std::max(ready_[i], ready_[i - 1]);
    return ready_;
  }

 private:
  double layer_bytes(std::uint32_t layer) const {
    return static_cast<double>(job_.slice_bytes[layer] + (layer == 0 ? job_.header_bytes : 0));
  }

  /// 0 to 1.
  double random() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1ULL << 24);
  }

  void issue() {
    while (next_ < reads_.size() && busy_.size() < store_.connections) {
      const RangeRead& read = reads_[next_];
      const bool earlier_pass_runs =
          std::ranges::any_of(busy_, [&](const Transfer& t) { return t.read->pass < read.pass; });
      if (rule_ == PassRule::kBarrier && earlier_pass_runs) return;
      const double first_byte = std::chrono::duration<double>(store_.first_byte).count() *
                                (1 - jitter_ + 2 * jitter_ * random());
      busy_.push_back({.read = &read,
                       .first_byte_at = now_ + first_byte,
                       .layer = read.first_layer,
                       .left = layer_bytes(read.first_layer),
                       .rate = 0});
      ++next_;
    }
  }

  /// Fair shares within a pass; what it leaves goes to the next.
  void share() {
    const double one =
        store_.connection_bytes_per_s > 0 ? store_.connection_bytes_per_s : store_.bytes_per_s;
    double left = store_.bytes_per_s;
    std::ranges::sort(busy_, {}, [](const Transfer& t) { return t.read->pass; });
    for (std::size_t begin = 0; begin < busy_.size();) {
      std::size_t end = begin;
      double flowing = 0;
      for (; end < busy_.size() && busy_[end].read->pass == busy_[begin].read->pass; ++end) {
        if (busy_[end].first_byte_at <= now_) ++flowing;
      }
      const double rate = flowing > 0 ? std::min(one, left / flowing) : 0;
      for (std::size_t i = begin; i < end; ++i) {
        busy_[i].rate = busy_[i].first_byte_at <= now_ ? rate : 0;
      }
      left = std::max(0.0, left - rate * flowing);
      begin = end;
    }
  }

  /// To the next first byte or the next end of a layer.
  void step() {
    double next = kNone;
    for (const Transfer& t : busy_) {
      if (t.first_byte_at > now_) next = std::min(next, t.first_byte_at);
      if (t.rate > 0) next = std::min(next, now_ + t.left / t.rate);
    }
    const double passed = next - now_;
    now_ = next;
    for (Transfer& t : busy_) {
      t.left -= t.rate * passed;
      if (t.rate == 0 || t.left > 1e-6 * layer_bytes(t.layer)) continue;
      double& ready = ready_[t.layer - job_.first_layer];
      ready = std::max(ready, now_);
      if (++t.layer < t.read->first_layer + t.read->layer_count) t.left = layer_bytes(t.layer);
    }
    std::erase_if(busy_, [](const Transfer& t) {
      return t.layer == t.read->first_layer + t.read->layer_count;
    });
  }

  const std::vector<RangeRead>& reads_;
  const ReadJob& job_;
  const StoreCharacter& store_;
  PassRule rule_;
  double jitter_;
  std::uint64_t state_ = 1;
  std::vector<Transfer> busy_;
  std::vector<double> ready_;
  std::size_t next_ = 0;
  double now_ = 0;
};

}  // namespace

std::vector<double> simulate_link(const std::vector<RangeRead>& reads, const ReadJob& job,
                                  const StoreCharacter& store, PassRule rule, double jitter) {
  return Simulation(reads, job, store, rule, jitter).run();
}

}  // namespace objectcache::plan
