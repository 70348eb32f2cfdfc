#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/c_api_glue.h"
#include "cache/stats_json.h"
#include "objectcache/key_chain.h"

namespace {

using namespace objectcache::c_api;  // NOLINT: the glue of this API, and nothing else.
using objectcache::ChunkKey;
using objectcache::Error;
using objectcache::ErrorCode;
using objectcache::fail;
using objectcache::Result;
using objectcache::TimePoint;
using objectcache::UnitKey;

static_assert(sizeof(oc_key) == sizeof(ChunkKey) && sizeof(oc_key) == sizeof(UnitKey));
static_assert(OC_INVALID_ARGUMENT == static_cast<int>(ErrorCode::kInvalidArgument) &&
              OC_NOT_FOUND == static_cast<int>(ErrorCode::kNotFound) &&
              OC_PERMISSION_DENIED == static_cast<int>(ErrorCode::kPermissionDenied) &&
              OC_CORRUPT == static_cast<int>(ErrorCode::kCorrupt) &&
              OC_INCOMPATIBLE == static_cast<int>(ErrorCode::kIncompatible) &&
              OC_CONFLICT == static_cast<int>(ErrorCode::kConflict) &&
              OC_UNAVAILABLE == static_cast<int>(ErrorCode::kUnavailable) &&
              OC_THROTTLED == static_cast<int>(ErrorCode::kThrottled) &&
              OC_DEADLINE_EXCEEDED == static_cast<int>(ErrorCode::kDeadlineExceeded) &&
              OC_CANCELLED == static_cast<int>(ErrorCode::kCancelled) &&
              OC_LIMIT_EXCEEDED == static_cast<int>(ErrorCode::kLimitExceeded) &&
              OC_OUT_OF_SPACE == static_cast<int>(ErrorCode::kOutOfSpace) &&
              OC_UNSUPPORTED == static_cast<int>(ErrorCode::kUnsupported) &&
              OC_INTERNAL == static_cast<int>(ErrorCode::kInternal));

template <class Key>
Result<void> keys_to(const std::vector<Key>& from, oc_key* keys, std::size_t capacity,
                     std::size_t* count) {
  *count = from.size();
  if (from.size() > capacity) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{} keys do not fit into {}", from.size(), capacity));
  }
  if (from.empty()) return {};
  if (keys == nullptr) return missing("keys");
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::memcpy(keys[i].bytes, &from[i].bytes, sizeof(Key));
  }
  return {};
}

std::string_view text_of(const char* data, std::size_t size) {
  return data == nullptr ? std::string_view() : std::string_view(data, size);
}

objectcache::CacheOptions options_from(const oc_cache_options& in) {
  objectcache::CacheOptions out;
  if (in.tenant != nullptr) out.tenant = in.tenant;
  out.read_memory_bytes = in.read_memory_bytes;
  out.write_memory_bytes = in.write_memory_bytes;
  out.streams_max = in.streams_max;
  out.requests_in_flight_max = in.requests_in_flight_max;
  out.stream_connections_max = in.stream_connections_max;
  out.writes_in_flight_max = in.writes_in_flight_max;
  out.match_probes_max = in.match_probes_max;
  out.match_cache_entries_max = in.match_cache_entries_max;
  out.negative_cache_ttl = std::chrono::milliseconds(in.negative_cache_ttl_ms);
  out.reactor_threads = in.reactor_threads;
  out.delete_bad_objects = in.delete_bad_objects != 0;
  for (const char* const* each = in.environment; each != nullptr && *each != nullptr; ++each) {
    const std::string_view text = *each;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    out.environment.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  if (in.home_directory != nullptr) out.environment.home_directory = in.home_directory;
  return out;
}

/// What oc_match and oc_prove have in common.
template <class Ask>
std::int32_t count_leading(oc_namespace* space, const oc_key* chunks, std::size_t chunk_count,
                           std::int64_t timeout_ms, std::uint32_t* count, oc_error* error,
                           Ask ask) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (space == nullptr) return missing("space");
    if (count == nullptr) return missing("the place of the answer");
    *count = 0;
    if (chunks == nullptr && chunk_count > 0) return missing("chunks");
    const auto until = deadline(timeout_ms);
    if (!until) return std::unexpected(until.error());
    const auto keys = keys_from<ChunkKey>(chunks, chunk_count);
    const auto found = ask(space->space, keys, *until);
    if (!found) return std::unexpected(found.error());
    *count = found->chunks;
    return {};
  });
}

}  // namespace

extern "C" {

const char* oc_error_name(int32_t code) noexcept {
  if (code == OC_OK) return "ok";
  if (code < 0 || code > OC_INTERNAL) return "unknown";
  return objectcache::error_code_name(static_cast<ErrorCode>(code)).data();
}

// ---------------------------------------------------------------- cache

void oc_cache_options_init(oc_cache_options* options) noexcept {
  if (options == nullptr) return;
  try {
    const objectcache::CacheOptions defaults;
    *options = oc_cache_options{};
    options->struct_size = sizeof *options;
    options->read_memory_bytes = defaults.read_memory_bytes;
    options->write_memory_bytes = defaults.write_memory_bytes;
    options->streams_max = defaults.streams_max;
    options->requests_in_flight_max = defaults.requests_in_flight_max;
    options->stream_connections_max = defaults.stream_connections_max;
    options->writes_in_flight_max = defaults.writes_in_flight_max;
    options->match_probes_max = defaults.match_probes_max;
    options->match_cache_entries_max = defaults.match_cache_entries_max;
    options->negative_cache_ttl_ms =
        static_cast<std::uint32_t>(defaults.negative_cache_ttl.count());
    options->reactor_threads = defaults.reactor_threads;
    options->delete_bad_objects = defaults.delete_bad_objects ? 1 : 0;
  } catch (...) {
    options->struct_size = 0;  // oc_cache_open refuses it.
  }
}

int32_t oc_cache_open(const char* url, const oc_cache_options* options, oc_cache** out,
                      oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (out == nullptr) return missing("out");
    *out = nullptr;
    if (url == nullptr) return missing("url");
    objectcache::CacheOptions given;
    if (options != nullptr) {
      if (options->struct_size != sizeof *options) {
        return fail(ErrorCode::kInvalidArgument,
                    "fill the options with oc_cache_options_init(); this library has another size");
      }
      given = options_from(*options);
    }
    auto cache = objectcache::Cache::open(url, std::move(given));
    if (!cache) return std::unexpected(std::move(cache.error()));
    *out = new oc_cache{std::move(*cache)};
    return {};
  });
}

void oc_cache_close(oc_cache* cache) noexcept { delete cache; }

size_t oc_cache_stats_json(oc_cache* cache, char* buffer, size_t capacity) noexcept {
  if (buffer != nullptr && capacity > 0) *buffer = '\0';
  if (cache == nullptr) return 0;
  try {
    const std::string text = objectcache::cache::stats_json(cache->cache->stats());
    if (buffer != nullptr && capacity > 0) {
      const std::size_t length = std::min(text.size(), capacity - 1);
      std::memcpy(buffer, text.data(), length);
      buffer[length] = '\0';
    }
    return text.size();
  } catch (...) {
    return 0;
  }
}

// ---------------------------------------------------------------- namespace and keys

int32_t oc_namespace_open(oc_cache* cache, const char* json, size_t json_bytes,
                          const oc_shard* shard, oc_namespace** out, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (out == nullptr) return missing("out");
    *out = nullptr;
    if (cache == nullptr) return missing("cache");
    if (json == nullptr) return missing("json");
    auto spec = objectcache::parse_namespace({json, json_bytes});
    if (!spec) return std::unexpected(std::move(spec.error()));
    objectcache::Shard which;
    if (shard != nullptr) {
      which = {.tp_rank = shard->tp_rank,
               .tp_size = shard->tp_size,
               .pp_rank = shard->pp_rank,
               .pp_size = shard->pp_size};
    }
    auto space = cache->cache->open_namespace(std::move(*spec), which);
    if (!space) return std::unexpected(std::move(space.error()));
    *out = new oc_namespace{std::move(*space)};
    return {};
  });
}

void oc_namespace_close(oc_namespace* space) noexcept { delete space; }

uint32_t oc_namespace_layers(const oc_namespace* space) noexcept {
  return space == nullptr ? 0 : space->space.spec().layers;
}
uint32_t oc_namespace_unit_tokens(const oc_namespace* space) noexcept {
  return space == nullptr ? 0 : space->space.spec().unit_tokens;
}
uint32_t oc_namespace_chunk_tokens(const oc_namespace* space) noexcept {
  return space == nullptr ? 0 : space->space.spec().chunk_tokens;
}
uint64_t oc_namespace_slice_bytes(const oc_namespace* space, uint32_t layer) noexcept {
  if (space == nullptr || layer >= space->space.spec().layers) return 0;
  return space->space.spec().slice_bytes(layer);
}

int32_t oc_unit_keys(const oc_namespace* space, const char* salt, size_t salt_bytes,
                     const uint32_t* tokens, size_t token_count, oc_key* keys, size_t capacity,
                     size_t* count, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (count == nullptr) return missing("count");
    *count = 0;
    if (space == nullptr) return missing("space");
    if (tokens == nullptr && token_count > 0) return missing("tokens");
    auto made = objectcache::unit_keys(space->space.spec(), text_of(salt, salt_bytes),
                                       {tokens, token_count});
    if (!made) return std::unexpected(std::move(made.error()));
    return keys_to(*made, keys, capacity, count);
  });
}

int32_t oc_engine_unit_keys(const oc_namespace* space, const char* salt, size_t salt_bytes,
                            const void* hashes, size_t hash_bytes, size_t hash_count, oc_key* keys,
                            size_t capacity, size_t* count, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (count == nullptr) return missing("count");
    *count = 0;
    if (space == nullptr) return missing("space");
    if (hashes == nullptr && hash_count > 0) return missing("hashes");
    std::vector<objectcache::EngineHash> list;
    list.reserve(hash_count);
    for (std::size_t i = 0; i < hash_count; ++i) {
      list.emplace_back(static_cast<const std::byte*>(hashes) + i * hash_bytes, hash_bytes);
    }
    auto made = objectcache::engine_unit_keys(space->space.spec(), text_of(salt, salt_bytes), list);
    if (!made) return std::unexpected(std::move(made.error()));
    return keys_to(*made, keys, capacity, count);
  });
}

int32_t oc_chunk_keys(const oc_namespace* space, const oc_key* units, size_t unit_count,
                      oc_key* chunks, size_t capacity, size_t* count, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (count == nullptr) return missing("count");
    *count = 0;
    if (space == nullptr) return missing("space");
    if (units == nullptr && unit_count > 0) return missing("units");
    return keys_to(objectcache::chunk_keys(keys_from<UnitKey>(units, unit_count),
                                           space->space.spec().units_per_chunk()),
                   chunks, capacity, count);
  });
}

// ---------------------------------------------------------------- match, prove, forget

int32_t oc_match(oc_namespace* space, const oc_key* chunks, size_t chunk_count, int64_t timeout_ms,
                 uint32_t* matched, oc_error* error) noexcept {
  return count_leading(
      space, chunks, chunk_count, timeout_ms, matched, error,
      [](auto& in, const auto& keys, TimePoint until) { return in.match(keys, until); });
}

int32_t oc_prove(oc_namespace* space, const oc_key* chunks, size_t chunk_count, int64_t timeout_ms,
                 uint32_t* proven, oc_error* error) noexcept {
  return count_leading(
      space, chunks, chunk_count, timeout_ms, proven, error,
      [](auto& in, const auto& keys, TimePoint until) { return in.prove(keys, until); });
}

void oc_forget(oc_namespace* space, const oc_key* chunks, size_t chunk_count) noexcept {
  static_cast<void>(guarded(nullptr, [&]() -> Result<void> {
    if (space != nullptr && chunks != nullptr) {
      space->space.forget(keys_from<ChunkKey>(chunks, chunk_count));
    }
    return {};
  }));
}

}  // extern "C"
