#include "objectcache/cache.h"

#include <string>
#include <utility>

#include "cache/cache_core.h"
#include "cache/cache_impl.h"
#include "store/open_store.h"

namespace objectcache {

Cache::Cache(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Cache::~Cache() = default;

Result<std::unique_ptr<Cache>> Cache::Impl::open(CacheOptions options,
                                                 cache::CacheCore::StoreFactory open_store) {
  auto core = cache::CacheCore::create(std::move(options), std::move(open_store));
  if (!core) return std::unexpected(std::move(core.error()));
  return std::unique_ptr<Cache>(new Cache(std::make_unique<Impl>(std::move(*core))));
}

Result<std::unique_ptr<Cache>> Cache::open(std::string_view url, CacheOptions options) {
  // The environment is for opening only: credentials live in the store. It is copied before the
  // options are moved from, which compilers do in orders of their own within one call.
  auto open_store = [url = std::string(url), environment = options.environment] {
    return store::open_store(url, environment);
  };
  return Impl::open(std::move(options), std::move(open_store));
}

Result<CacheNamespace> Cache::open_namespace(NamespaceSpec spec, Shard shard) {
  auto space = impl_->core()->open_namespace(std::move(spec), shard);
  if (!space) return std::unexpected(std::move(space.error()));
  return CacheNamespace(std::make_shared<CacheNamespace::Impl>(impl_->core(), std::move(*space)));
}

CacheStats Cache::stats() const { return impl_->core()->stats(); }

CacheNamespace::CacheNamespace(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
CacheNamespace::CacheNamespace(CacheNamespace&&) noexcept = default;
CacheNamespace& CacheNamespace::operator=(CacheNamespace&&) noexcept = default;
CacheNamespace::~CacheNamespace() = default;

const NamespaceSpec& CacheNamespace::spec() const noexcept { return impl_->space()->spec; }
const Shard& CacheNamespace::shard() const noexcept { return impl_->space()->shard; }

Result<Match> CacheNamespace::match(std::span<const ChunkKey> chunks, TimePoint deadline,
                                    std::optional<std::uint32_t> hint) {
  return impl_->core()->match(impl_->space(), chunks, deadline, hint);
}

Result<Proof> CacheNamespace::prove(std::span<const ChunkKey> chunks, TimePoint deadline) {
  return impl_->core()->prove(impl_->space(), chunks, deadline);
}

Result<LayerStream> CacheNamespace::open_stream(ReadRequest request) {
  return impl_->core()->open_stream(impl_->space(), std::move(request));
}

Result<PrefixWriter> CacheNamespace::open_writer(std::span<const UnitKey> unit_keys,
                                                 std::uint32_t first_chunk) {
  return impl_->core()->open_writer(impl_->space(), unit_keys, first_chunk);
}

void CacheNamespace::forget(std::span<const ChunkKey> chunks) {
  impl_->core()->forget(impl_->space(), chunks);
}

}  // namespace objectcache
