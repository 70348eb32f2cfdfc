#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cache/chunk_id.h"
#include "format/chunk_layout.h"
#include "format/names.h"
#include "objectcache/namespace_spec.h"
#include "objectcache/shard.h"
#include "store/object_store.h"

namespace objectcache::cache {

/// One namespace as one shard of one tenant sees it: everything that is computed once from the
/// spec.
///
/// Immutable but for the mark that its description was stored. Threads: any.
struct NamespaceState {
  /// Whether namespace.json is in the store, as far as this process knows.
  enum class Description : std::uint8_t { kUnknown, kBeingWritten, kStored };

  NamespaceSpec spec;
  Shard shard;
  ScopeId scope{};
  NamespaceDigest digest;
  std::string canonical_json;
  format::ChunkLayout layout;
  format::ObjectNames names;
  mutable std::atomic<Description> description{Description::kUnknown};

  /// Names of a store already start with its own prefix: here they start with the tenant.
  /// kInvalidArgument: what validate(), the shard or the tenant break.
  [[nodiscard]] static Result<std::shared_ptr<const NamespaceState>> create(NamespaceSpec spec,
                                                                            Shard shard,
                                                                            std::string_view tenant,
                                                                            ScopeId scope);

  [[nodiscard]] ChunkId id(const ChunkKey& key) const { return {scope, key}; }
  /// Requires object_layer < layout.object_count().
  [[nodiscard]] store::ObjectKey object(const ChunkKey& key, std::uint32_t object_layer = 0) const {
    return {names.object(key, shard, object_layer)};
  }

  NamespaceState(NamespaceSpec spec_in, Shard shard_in, ScopeId scope_in, NamespaceDigest digest_in,
                 std::string json, format::ChunkLayout layout_in, format::ObjectNames names_in)
      : spec(std::move(spec_in)),
        shard(shard_in),
        scope(scope_in),
        digest(digest_in),
        canonical_json(std::move(json)),
        layout(std::move(layout_in)),
        names(std::move(names_in)) {}
};

}  // namespace objectcache::cache
