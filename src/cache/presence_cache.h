#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cache/chunk_id.h"
#include "objectcache/types.h"

namespace objectcache::cache {

/// Remembers which chunks the store was seen to have, and for a moment which it had not.
///
/// A hint only: an entry is forgotten as soon as a read of it failed, so that a lost object is
/// never looked for again and again. When full, the entry that was not asked for since the last
/// sweep makes room (CLOCK). Time is an argument.
///
/// Threads: any.   Limits: Options::entries_max entries of about 150 bytes.
class PresenceCache {
 public:
  struct Options {
    std::uint32_t entries_max = 65536;  ///< 0: remembers nothing.
    /// Of "absent"; never more than kNegativeTtlMax, since another process may write any time.
    Duration negative_ttl = std::chrono::seconds(1);
    /// Of "present": bounds how long a deletion by another process goes unnoticed by a writer.
    Duration positive_ttl = std::chrono::minutes(10);
  };
  static constexpr Duration kNegativeTtlMax = std::chrono::seconds(1);

  enum class Answer : std::uint8_t { kUnknown, kPresent, kAbsent };

  explicit PresenceCache(Options options);

  [[nodiscard]] Answer look_up(const ChunkId& id, TimePoint now);
  void remember(const ChunkId& id, bool present, TimePoint now);
  void forget(const ChunkId& id);
  [[nodiscard]] std::size_t size() const;

 private:
  struct Slot {
    ChunkId id;
    TimePoint expires{};
    bool used = false;
    bool present = false;
    bool asked_for = false;
  };

  std::uint32_t slot_to_fill();

  const Options options_;
  mutable std::mutex mutex_;
  std::unordered_map<ChunkId, std::uint32_t, ChunkIdHash> index_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t hand_ = 0;
};

}  // namespace objectcache::cache
