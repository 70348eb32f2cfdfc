#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "cache/chunk_id.h"
#include "objectcache/types.h"

namespace objectcache::cache {

/// Chunks with a mark that fades. Two kinds are kept:
///
/// Bad: the stored object was seen to fail its check. Until it is mended a match does not count it,
/// and the next writer replaces it, since a conditional PUT would leave the bad one.
/// Lost: a read found the chunk missing that a match had promised. Presence is only almost
/// monotone, and a search that probes few chunks would step over the same hole for ever: a match
/// asks the store about such a chunk first.
///
/// Threads: any. Time is an argument.   Limits: entries_max, the oldest fades first; and the time
/// to live, since another process may have mended things. To forget too early costs one more failed
/// read.
class ChunkMarks {
 public:
  static constexpr Duration kBadTtl = std::chrono::minutes(1);
  static constexpr Duration kLostTtl = std::chrono::minutes(10);

  ChunkMarks(std::uint32_t entries_max, Duration ttl) : entries_max_(entries_max), ttl_(ttl) {}

  void add(const ChunkId& id, TimePoint now);
  void forget(const ChunkId& id);
  [[nodiscard]] bool contains(const ChunkId& id, TimePoint now) const;
  [[nodiscard]] std::size_t size() const;

 private:
  const std::uint32_t entries_max_;
  const Duration ttl_;
  mutable std::mutex mutex_;
  std::unordered_map<ChunkId, TimePoint, ChunkIdHash> expires_;
  std::deque<ChunkId> order_;  ///< Oldest first; the same entries.
};

}  // namespace objectcache::cache
