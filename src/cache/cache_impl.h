#pragma once

#include <memory>
#include <utility>

#include "cache/cache_core.h"
#include "objectcache/cache.h"

namespace objectcache {

/// What the public handles hold. The core is shared; the Cache is the one that closes it.
class Cache::Impl {
 public:
  explicit Impl(std::shared_ptr<cache::CacheCore> core) : core_(std::move(core)) {}
  ~Impl() { core_->close(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  /// For tests and programs that bring their own store: what Cache::open does behind the URL.
  [[nodiscard]] static Result<std::unique_ptr<Cache>> open(
      CacheOptions options, cache::CacheCore::StoreFactory open_store);

  [[nodiscard]] const std::shared_ptr<cache::CacheCore>& core() const { return core_; }

 private:
  const std::shared_ptr<cache::CacheCore> core_;
};

class CacheNamespace::Impl {
 public:
  Impl(std::shared_ptr<cache::CacheCore> core, cache::CacheCore::Space space)
      : core_(std::move(core)), space_(std::move(space)) {}

  [[nodiscard]] const std::shared_ptr<cache::CacheCore>& core() const { return core_; }
  [[nodiscard]] const cache::CacheCore::Space& space() const { return space_; }

 private:
  const std::shared_ptr<cache::CacheCore> core_;
  const cache::CacheCore::Space space_;
};

}  // namespace objectcache
