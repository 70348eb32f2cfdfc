#include "store/memory/memory_objects.h"

#include <algorithm>

#include "store/request_checks.h"

namespace objectcache::store {

std::optional<MemoryObjects::Object> MemoryObjects::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(key);
  return it == objects_.end() ? std::nullopt : std::optional(it->second);
}

bool MemoryObjects::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > capacity_bytes_ - used_bytes_) return false;
  used_bytes_ += bytes;
  return true;
}

void MemoryObjects::unreserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= bytes;
}

std::optional<PutAnswer> MemoryObjects::publish(const std::string& key,
                                                std::shared_ptr<const Body> body, PutMode mode) {
  std::shared_ptr<const Body> replaced;  // Freed after the mutex is released.
  const std::lock_guard lock(mutex_);
  auto it = objects_.find(key);
  if (it != objects_.end() && mode == PutMode::kIfAbsent) {
    return PutAnswer{.outcome = PutOutcome::kAlreadyExists, .version = {}};
  }
  if (it == objects_.end()) {
    if (objects_.size() >= objects_max_) return std::nullopt;
    it = objects_.try_emplace(key).first;
  } else {
    replaced = std::move(it->second.body);
    used_bytes_ -= replaced->size_bytes;
  }
  it->second = {.body = std::move(body),
                .version = {"m-" + std::to_string(++last_version_)},
                .modified = std::chrono::system_clock::now()};
  return PutAnswer{.outcome = PutOutcome::kCreated, .version = it->second.version};
}

void MemoryObjects::erase(const std::string& key) {
  decltype(objects_)::node_type node;  // Freed after the mutex is released.
  const std::lock_guard lock(mutex_);
  node = objects_.extract(key);
  if (!node.empty()) used_bytes_ -= node.mapped().body->size_bytes;
}

ListPage MemoryObjects::list(const ListRequest& request) const {
  ListPage page;
  std::string last;  // Where the next page starts, should there be one.
  const std::lock_guard lock(mutex_);
  auto it = request.start_after < request.prefix ? objects_.lower_bound(request.prefix)
                                                 : objects_.upper_bound(request.start_after);
  while (it != objects_.end() && it->first.starts_with(request.prefix)) {
    if (page.entries.size() + page.common_prefixes.size() == request.entries_max) {
      page.next_start_after = std::move(last);
      return page;
    }
    const std::size_t roll_up = request.delimiter == 0
                                    ? std::string::npos
                                    : it->first.find(request.delimiter, request.prefix.size());
    if (roll_up != std::string::npos) {
      page.common_prefixes.push_back(it->first.substr(0, roll_up + 1));
      last = start_after_common_prefix(page.common_prefixes.back());
      it = objects_.upper_bound(last);
    } else {
      page.entries.push_back({.key = {it->first},
                              .size_bytes = it->second.body->size_bytes,
                              .version = it->second.version,
                              .modified = it->second.modified});
      last = it->first;
      ++it;
    }
  }
  return page;
}

std::uint64_t MemoryObjects::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

std::size_t MemoryObjects::size() const {
  const std::lock_guard lock(mutex_);
  return objects_.size();
}

}  // namespace objectcache::store
