#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/export.h"
#include "objectcache/namespace_spec.h"
#include "objectcache/types.h"

namespace objectcache {

/// What a unit depends on beside its tokens: digests and positions of images, prompt embeddings.
struct UnitExtra {
  std::uint32_t unit = 0;  ///< Index of the unit in the prompt.
  ConstSegment bytes;      ///< At most kExtraBytesMax.
};

inline constexpr std::size_t kExtraBytesMax = 64 * 1024;  ///< Of one unit.
inline constexpr std::size_t kTokensPerPromptMax = 1U << 26;

/// The chain of unit keys of one prompt (docs/formats/keys.md):
/// `H(-1) = HMAC-SHA256(SHA-256(cache salt), "objectcache/1" || namespace digest)`,
/// `H(i) = SHA-256(H(i-1) || u32 n || n tokens as u32 LE || u32 m || extra(i))`.
///
/// A chain can be copied to go on from a common prefix. The salt is not kept.
/// Threads: one at a time.
class OBJECTCACHE_EXPORT KeyChain {
 public:
  /// An empty salt is a salt like any other.
  KeyChain(const NamespaceDigest& name, std::string_view cache_salt) noexcept;
  /// Goes on behind a unit whose key is known.
  explicit KeyChain(const UnitKey& last) noexcept : head_(last) {}

  /// The key of the next unit. Requires: exactly one unit's tokens (the namespace's unit_tokens),
  /// `extra` of at most kExtraBytesMax. Neither allocates nor fails.
  UnitKey append(std::span<const TokenId> tokens, ConstSegment extra = {}) noexcept;
  /// The key of the last unit; of a new chain, the root.
  [[nodiscard]] const UnitKey& head() const noexcept { return head_; }

 private:
  UnitKey head_;
};

/// The keys of all full units of a prompt; tokens behind the last full unit have none.
/// `extras` ascend strictly by unit; those of units beyond the last full one are ignored.
/// Requires a namespace with our own chain (KeySource::kOwnChain).
OBJECTCACHE_EXPORT Result<std::vector<UnitKey>> unit_keys(const NamespaceSpec& spec,
                                                          std::string_view cache_salt,
                                                          std::span<const TokenId> tokens,
                                                          std::span<const UnitExtra> extras = {});

/// One of the engine's chained block hashes: 32 to 64 bytes.
using EngineHash = std::span<const std::byte>;

/// The key of a unit from the engine's chained hash of the unit's last block:
/// `SHA-256("objectcache/1/engine" || namespace digest || SHA-256(cache salt) || u32 len || hash)`.
/// Requires a hash of 32 to 64 bytes; a shorter one cannot be trusted and is refused.
OBJECTCACHE_EXPORT Result<UnitKey> engine_unit_key(const NamespaceDigest& name,
                                                   std::string_view cache_salt, EngineHash hash);

/// The keys of all full units of a prompt from the engine's hashes of its full blocks, in order.
/// Requires a namespace with an engine hash (KeySource::kEngineHash).
OBJECTCACHE_EXPORT Result<std::vector<UnitKey>> engine_unit_keys(
    const NamespaceSpec& spec, std::string_view cache_salt,
    std::span<const EngineHash> block_hashes);

/// The keys of all full chunks: every units_per_chunk-th unit key. Requires units_per_chunk > 0.
OBJECTCACHE_EXPORT std::vector<ChunkKey> chunk_keys(std::span<const UnitKey> units,
                                                    std::uint32_t units_per_chunk);

}  // namespace objectcache
