#include "cache/namespace_state.h"

#include <utility>

namespace objectcache::cache {

Result<std::shared_ptr<const NamespaceState>> NamespaceState::create(NamespaceSpec spec,
                                                                     Shard shard,
                                                                     std::string_view tenant,
                                                                     ScopeId scope) {
  if (auto ok = validate(spec); !ok) return std::unexpected(std::move(ok.error()));
  if (!format::is_valid(shard)) {
    return fail(ErrorCode::kInvalidArgument,
                "a shard's sizes are at least 1 and its ranks lie below them", "open namespace",
                shard.to_string());
  }
  auto json = objectcache::canonical_json(spec);
  if (!json) return std::unexpected(std::move(json.error()));
  auto digest = namespace_digest(spec);
  if (!digest) return std::unexpected(std::move(digest.error()));
  auto layout = format::ChunkLayout::create(spec);
  if (!layout) return std::unexpected(std::move(layout.error()));
  auto names = format::ObjectNames::create("", tenant, *digest);
  if (!names) return std::unexpected(std::move(names.error()));
  return std::make_shared<const NamespaceState>(std::move(spec), shard, scope, *digest,
                                                std::move(*json), std::move(*layout),
                                                std::move(*names));
}

}  // namespace objectcache::cache
