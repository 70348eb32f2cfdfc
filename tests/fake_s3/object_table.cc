#include "fake_s3/object_table.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "digest/hex.h"
#include "digest/md5.h"

namespace objectcache::fake_s3 {

void ObjectTable::create_bucket(std::string_view bucket) {
  const std::unique_lock lock(mutex_);
  buckets_.try_emplace(std::string(bucket));
}

bool ObjectTable::has_bucket(std::string_view bucket) const {
  const std::shared_lock lock(mutex_);
  return buckets_.contains(bucket);
}

ObjectPtr ObjectTable::find(std::string_view bucket, std::string_view key) const {
  const std::shared_lock lock(mutex_);
  const auto b = buckets_.find(bucket);
  if (b == buckets_.end()) return nullptr;
  const auto it = b->second.find(key);
  return it == b->second.end() ? nullptr : it->second;
}

ObjectPtr ObjectTable::find_other(std::string_view bucket, std::string_view key) const {
  const std::shared_lock lock(mutex_);
  const auto b = buckets_.find(bucket);
  if (b == buckets_.end() || b->second.empty()) return nullptr;
  auto it = b->second.upper_bound(key);
  if (it == b->second.end()) it = b->second.begin();
  return it->first == key ? nullptr : it->second;
}

std::optional<ObjectTable::PutResult> ObjectTable::put(std::string_view bucket,
                                                       std::string_view key,
                                                       std::vector<std::byte> bytes,
                                                       Condition condition, std::string_view etag) {
  auto object = std::make_shared<Object>();
  object->bytes = std::move(bytes);
  object->modified = std::chrono::system_clock::now();
  if (etags_ == EtagMode::kMd5) {
    object->etag = fmt::format("\"{}\"", digest::hex(digest::md5(object->bytes)));
  }
  const std::unique_lock lock(mutex_);
  const auto b = buckets_.find(bucket);
  if (b == buckets_.end()) return std::nullopt;
  const auto it = b->second.find(key);
  const bool exists = it != b->second.end();
  const bool holds =
      condition == Condition::kNone || (condition == Condition::kAbsent && !exists) ||
      (condition == Condition::kMatches && exists && (etag == "*" || etag == it->second->etag));
  if (!holds) return PutResult{.object = nullptr, .existed = exists};
  if (etags_ == EtagMode::kUnique) object->etag = fmt::format("\"fake-{:032x}\"", ++publications_);
  if (exists) {
    it->second = object;
  } else {
    b->second.emplace(key, object);
  }
  return PutResult{.object = std::move(object), .existed = exists};
}

void ObjectTable::erase(std::string_view bucket, std::string_view key) {
  ObjectPtr gone;  // freed after the lock
  const std::unique_lock lock(mutex_);
  const auto b = buckets_.find(bucket);
  if (b == buckets_.end()) return;
  const auto it = b->second.find(key);
  if (it == b->second.end()) return;
  gone = std::move(it->second);
  b->second.erase(it);
}

std::size_t ObjectTable::count(std::string_view bucket) const {
  const std::shared_lock lock(mutex_);
  const auto b = buckets_.find(bucket);
  return b == buckets_.end() ? 0 : b->second.size();
}

ObjectTable::ListPage ObjectTable::list(std::string_view bucket, const ListQuery& query) const {
  ListPage page;
  const std::shared_lock lock(mutex_);
  const auto b = buckets_.find(bucket);
  if (b == buckets_.end()) return page;
  auto it = b->second.lower_bound(query.prefix);
  if (query.after >= query.prefix) it = b->second.upper_bound(query.after);
  while (it != b->second.end() && it->first.starts_with(query.prefix)) {
    const std::string& key = it->first;
    const std::size_t cut = query.delimiter.empty()
                                ? std::string::npos
                                : key.find(query.delimiter, query.prefix.size());
    const std::string group =
        cut == std::string::npos ? "" : key.substr(0, cut + query.delimiter.size());
    // A page that ended with a group names it as `after`.
    const bool told = !group.empty() && query.after == group;
    if (!told) {
      if (page.objects.size() + page.common_prefixes.size() == query.entries_max) {
        page.truncated = true;
        return page;
      }
      page.last = group.empty() ? key : group;
      if (group.empty()) {
        page.objects.push_back({.key = key,
                                .size_bytes = it->second->bytes.size(),
                                .etag = it->second->etag,
                                .modified = it->second->modified});
      } else {
        page.common_prefixes.push_back(group);
      }
    }
    if (group.empty()) {
      ++it;
    } else {
      // Past the whole group: to the first key that does not start with it.
      while (it != b->second.end() && it->first.starts_with(group)) ++it;
    }
  }
  return page;
}

}  // namespace objectcache::fake_s3
