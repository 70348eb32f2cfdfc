#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "objectcache/cache.h"

namespace objectcache::cli {

/// A prefix named by files, and the store it belongs to, opened: what put, get and match start
/// from.
struct OpenPrefix {
  std::unique_ptr<Cache> cache;
  std::optional<CacheNamespace> space;
  std::vector<TokenId> tokens;
  std::vector<UnitKey> units;
  std::vector<ChunkKey> chunks;

  [[nodiscard]] const NamespaceSpec& spec() const { return space->spec(); }
  /// Tokens behind the last full chunk: they are not stored.
  [[nodiscard]] std::size_t tail_tokens() const {
    return tokens.size() - chunks.size() * spec().chunk_tokens;
  }
};

[[nodiscard]] Result<OpenPrefix> open_prefix(const StoreOptions& store, const PrefixOptions& prefix,
                                             CacheOptions cache_options = {});
[[nodiscard]] Result<ReadMode> parse_read_mode(std::string_view name);
[[nodiscard]] inline TimePoint deadline_after(std::chrono::milliseconds span) {
  return std::chrono::steady_clock::now() + span;
}

}  // namespace objectcache::cli
