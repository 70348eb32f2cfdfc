#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "cache/chunk_id.h"
#include "objectcache/types.h"

namespace objectcache::cache {

/// The chunks whose stored object this process saw fail its check: until they are mended, a match
/// does not count them, and the next writer replaces the object, since a conditional PUT would
/// leave the bad one.
///
/// Threads: any. Time is an argument.   Limits: entries_max, the oldest is forgotten first; and
/// kTtl, since another process may have mended the object. Forgetting too early costs no more than
/// finding the object bad once again.
class BadObjects {
 public:
  static constexpr Duration kTtl = std::chrono::minutes(1);

  explicit BadObjects(std::uint32_t entries_max) : entries_max_(entries_max) {}

  void add(const ChunkId& id, TimePoint now);
  void forget(const ChunkId& id);
  [[nodiscard]] bool contains(const ChunkId& id, TimePoint now) const;
  [[nodiscard]] std::size_t size() const;

 private:
  const std::uint32_t entries_max_;
  mutable std::mutex mutex_;
  std::unordered_map<ChunkId, TimePoint, ChunkIdHash> expires_;
  std::deque<ChunkId> order_;  ///< Oldest first; the same entries.
};

}  // namespace objectcache::cache
