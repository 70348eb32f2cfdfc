#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace objectcache::sched {

/// A heap of slots (small integers), smallest key first, in which a slot can be found, moved and
/// taken out. Four children a node: half as many levels as two, and they share a cache line.
///
/// Allocates only in grow(). Threads: one at a time.
template <class Key>
class IndexedHeap {
 public:
  /// From now on slots below `slots` may be used.
  void grow(std::uint32_t slots) {
    nodes_.reserve(slots);
    positions_.resize(slots, kAbsent);
  }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] bool contains(std::uint32_t slot) const { return positions_[slot] != kAbsent; }
  /// Requires: not empty.
  [[nodiscard]] std::uint32_t top() const { return nodes_.front().slot; }

  /// Puts the slot in, or moves it to its new key.
  void set(std::uint32_t slot, const Key& key) {
    std::uint32_t at = positions_[slot];
    if (at == kAbsent) {
      at = size();
      nodes_.push_back({key, slot});
      positions_[slot] = at;
    } else {
      nodes_[at].key = key;
    }
    sift_down(sift_up(at));
  }
  /// Harmless when the slot is absent.
  void erase(std::uint32_t slot) {
    const std::uint32_t at = positions_[slot];
    if (at == kAbsent) return;
    const std::uint32_t last = size() - 1;
    if (at != last) {
      place(at, nodes_[last]);
      nodes_.pop_back();
      positions_[slot] = kAbsent;
      sift_down(sift_up(at));
    } else {
      nodes_.pop_back();
      positions_[slot] = kAbsent;
    }
  }

 private:
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
  struct Node {
    Key key;
    std::uint32_t slot;
  };

  void place(std::uint32_t at, const Node& node) {
    nodes_[at] = node;
    positions_[node.slot] = at;
  }
  std::uint32_t sift_up(std::uint32_t at) {
    const Node node = nodes_[at];
    while (at > 0) {
      const std::uint32_t parent = (at - 1) / 4;
      if (!(node.key < nodes_[parent].key)) break;
      place(at, nodes_[parent]);
      at = parent;
    }
    place(at, node);
    return at;
  }
  void sift_down(std::uint32_t at) {
    const Node node = nodes_[at];
    for (;;) {
      const std::uint32_t first = 4 * at + 1;
      if (first >= size()) break;
      std::uint32_t best = first;
      const std::uint32_t end = first + 4 < size() ? first + 4 : size();
      for (std::uint32_t child = first + 1; child < end; ++child) {
        if (nodes_[child].key < nodes_[best].key) best = child;
      }
      if (!(nodes_[best].key < node.key)) break;
      place(at, nodes_[best]);
      at = best;
    }
    place(at, node);
  }

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace objectcache::sched
