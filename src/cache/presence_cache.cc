#include "cache/presence_cache.h"

#include <algorithm>

namespace objectcache::cache {

PresenceCache::PresenceCache(Options options)
    : options_{.entries_max = options.entries_max,
               .negative_ttl = std::min(options.negative_ttl, kNegativeTtlMax),
               .positive_ttl = options.positive_ttl} {}

PresenceCache::Answer PresenceCache::look_up(const ChunkId& id, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(id);
  if (found == index_.end()) return Answer::kUnknown;
  Slot& slot = slots_[found->second];
  if (slot.expires <= now) {
    slot.used = false;
    free_.push_back(found->second);
    index_.erase(found);
    return Answer::kUnknown;
  }
  slot.asked_for = true;
  return slot.present ? Answer::kPresent : Answer::kAbsent;
}

void PresenceCache::remember(const ChunkId& id, bool present, TimePoint now) {
  const Duration ttl = present ? options_.positive_ttl : options_.negative_ttl;
  if (options_.entries_max == 0) return;
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(id);
  if (found != index_.end()) {
    Slot& slot = slots_[found->second];
    slot.present = present;
    slot.expires = now + ttl;
    return;
  }
  const std::uint32_t at = slot_to_fill();
  // A new entry has to be asked for once before it survives a sweep: a long scan cannot push out
  // what is in use.
  slots_[at] =
      Slot{.id = id, .expires = now + ttl, .used = true, .present = present, .asked_for = false};
  index_.emplace(id, at);
}

void PresenceCache::forget(const ChunkId& id) {
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(id);
  if (found == index_.end()) return;
  slots_[found->second].used = false;
  free_.push_back(found->second);
  index_.erase(found);
}

std::size_t PresenceCache::size() const {
  const std::scoped_lock lock(mutex_);
  return index_.size();
}

std::uint32_t PresenceCache::slot_to_fill() {
  if (!free_.empty()) {
    const std::uint32_t at = free_.back();
    free_.pop_back();
    return at;
  }
  if (slots_.size() < options_.entries_max) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  // All slots are used here, and each turn of the hand clears one mark: at most two rounds.
  for (;;) {
    const std::uint32_t at = hand_;
    hand_ = (hand_ + 1) % static_cast<std::uint32_t>(slots_.size());
    Slot& slot = slots_[at];
    if (slot.asked_for) {
      slot.asked_for = false;
      continue;
    }
    index_.erase(slot.id);
    slot.used = false;
    return at;
  }
}

}  // namespace objectcache::cache
