#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "objectcache/types.h"

namespace objectcache::cache {

/// A number for one (namespace, shard) of one Cache: what a chunk key has to be joined with to name
/// one object. Given out by CacheCore; equal namespaces and shards have equal numbers.
enum class ScopeId : std::uint32_t {};

/// One chunk of one shard of one namespace inside this process.
struct ChunkId {
  ScopeId scope{};
  ChunkKey key;
  friend bool operator==(const ChunkId&, const ChunkId&) = default;
};

/// Chunk keys are digests already: their first bytes are a hash.
struct ChunkIdHash {
  std::size_t operator()(const ChunkId& id) const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, id.key.bytes.data(), sizeof word);
    return static_cast<std::size_t>(word ^
                                    (static_cast<std::uint64_t>(id.scope) * 0x9E3779B97F4A7C15ULL));
  }
};

}  // namespace objectcache::cache
