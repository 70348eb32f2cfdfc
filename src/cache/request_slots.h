#pragma once

#include <cstdint>
#include <deque>
#include <functional>

namespace objectcache::cache {

/// Bounds the small requests (HEADs, header reads) that all matches and proofs of one loop have in
/// flight together, first come first served.
///
/// Threads: owner thread of the loop.   Limits: slots_max running. The queue is as long as those
/// who wait in it have asked for: each match asks for at most its own probes_max.
class RequestSlots {
 public:
  explicit RequestSlots(std::uint32_t slots_max) : slots_max_(slots_max == 0 ? 1 : slots_max) {}

  /// Runs `go` at once or when a slot is free; release() must follow exactly once.
  void acquire(std::move_only_function<void()> go) {
    if (in_use_ < slots_max_ && waiting_.empty()) {
      ++in_use_;
      go();
    } else {
      waiting_.push_back(std::move(go));
    }
  }
  void release() {
    --in_use_;
    while (in_use_ < slots_max_ && !waiting_.empty()) {
      auto go = std::move(waiting_.front());
      waiting_.pop_front();
      ++in_use_;
      go();
    }
  }
  [[nodiscard]] std::uint32_t in_use() const { return in_use_; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

 private:
  const std::uint32_t slots_max_;
  std::uint32_t in_use_ = 0;
  std::deque<std::move_only_function<void()>> waiting_;
};

}  // namespace objectcache::cache
