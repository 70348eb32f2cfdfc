#include "cache/chunk_marks.h"

#include <algorithm>

namespace objectcache::cache {

void ChunkMarks::add(const ChunkId& id, TimePoint now) {
  if (entries_max_ == 0) return;
  const std::scoped_lock lock(mutex_);
  if (!expires_.insert_or_assign(id, now + ttl_).second) return;
  order_.push_back(id);
  while (expires_.size() > entries_max_) {
    expires_.erase(order_.front());
    order_.pop_front();
  }
}

void ChunkMarks::forget(const ChunkId& id) {
  const std::scoped_lock lock(mutex_);
  if (expires_.erase(id) == 0) return;
  // Marks are rare and taken off one by one: a linear search keeps the queue exact.
  const auto at = std::find(order_.begin(), order_.end(), id);
  if (at != order_.end()) order_.erase(at);
}

bool ChunkMarks::contains(const ChunkId& id, TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  const auto found = expires_.find(id);
  return found != expires_.end() && now < found->second;
}

std::size_t ChunkMarks::size() const {
  const std::scoped_lock lock(mutex_);
  return expires_.size();
}

}  // namespace objectcache::cache
