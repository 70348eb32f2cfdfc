#include "cli/prefix.h"

#include <fmt/format.h>

#include <utility>

#include "cli/files.h"
#include "objectcache/key_chain.h"

namespace objectcache::cli {

Result<OpenPrefix> open_prefix(const StoreOptions& store, const PrefixOptions& prefix,
                               CacheOptions cache_options) {
  auto spec = read_namespace_file(prefix.namespace_file);
  if (!spec) return std::unexpected(std::move(spec.error()));
  auto tokens = read_tokens_file(prefix.tokens_file);
  if (!tokens) return std::unexpected(std::move(tokens.error()));
  auto shard = Shard::parse(prefix.shard);
  if (!shard) return std::unexpected(std::move(shard.error()));
  auto units = unit_keys(*spec, prefix.cache_salt, *tokens);
  if (!units) return std::unexpected(std::move(units.error()));

  OpenPrefix out;
  out.tokens = std::move(*tokens);
  out.units = std::move(*units);
  out.chunks = chunk_keys(out.units, spec->units_per_chunk());
  cache_options.tenant = store.tenant;
  cache_options.environment = store.environment;
  auto cache = Cache::open(store.url, std::move(cache_options));
  if (!cache) return std::unexpected(std::move(cache.error()));
  out.cache = std::move(*cache);
  auto space = out.cache->open_namespace(std::move(*spec), *shard);
  if (!space) return std::unexpected(std::move(space.error()));
  out.space.emplace(std::move(*space));
  if (out.chunks.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} tokens do not fill one chunk of {}: nothing of this prefix can be "
                            "stored",
                            out.tokens.size(), out.spec().chunk_tokens),
                "read", prefix.tokens_file);
  }
  return out;
}

Result<ReadMode> parse_read_mode(std::string_view name) {
  static constexpr std::pair<std::string_view, ReadMode> kModes[] = {
      {"planned", ReadMode::kPlanned},
      {"chunkwise", ReadMode::kChunkwise},
      {"layerwise", ReadMode::kLayerwise},
      {"published", ReadMode::kPublished},
      {"whole-objects", ReadMode::kWholeObjects}};
  for (const auto& [text, mode] : kModes) {
    if (text == name) return mode;
  }
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is no read mode: planned, chunkwise, layerwise, published or "
                          "whole-objects",
                          name),
              "read option", "--mode");
}

}  // namespace objectcache::cli
