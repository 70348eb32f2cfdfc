#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/export.h"
#include "objectcache/types.h"

namespace objectcache {

/// How the slices of a chunk are spread over objects.
enum class ObjectLayout : std::uint8_t {
  kChunk = 0,  ///< One object a chunk: header, then all slices in layer order. The default.
  kLayer = 1,  ///< One object a layer of a chunk; the header rides with layer 0.
};

/// Which hash chain gives the unit keys.
enum class KeySource : std::uint8_t {
  kOwnChain,    ///< KeyChain over tokens: hash_algorithm "sha256-chain", hash_seed "none".
  kEngineHash,  ///< The engine's own chained block hashes: hash_algorithm "engine:...".
};

/// All that must agree before two chunks of KV may be exchanged. No field has a usable default:
/// what is not stated is refused, since equal keys must mean interchangeable KV. Two revisions of
/// a model are two namespaces side by side. Shard, tenant and cache salt lie beside the namespace.
///
/// Text fields hold 1 to 256 bytes of printable ASCII without '"' and '\'. Where something does
/// not apply, the word is "none". Byte-exact form and digest: docs/formats/namespace.md.
///
/// A plain value: validate() tells whether it is usable. Threads: any, as for every value.
struct NamespaceSpec {
  static constexpr std::uint32_t kFormatVersion = 1;
  static constexpr std::uint32_t kLayersMax = 1024;
  static constexpr std::uint32_t kTokensMax = 1U << 20;  ///< Of a block, unit or chunk.
  static constexpr std::uint32_t kUnitsPerChunkMax = 256;
  static constexpr std::uint64_t kBytesPerTokenMax = 1U << 24;  ///< Of one layer.
  static constexpr std::uint64_t kObjectBytesMax = 5ULL << 30;  ///< What one S3 PUT can carry.
  static constexpr std::size_t kTextBytesMax = 256;
  static constexpr std::size_t kJsonBytesMax = 64 * 1024;

  std::uint32_t format_version = kFormatVersion;
  std::string model_architecture;  ///< "LlamaForCausalLM".
  std::string model_fingerprint;   ///< Of config and weights, or an immutable revision.
  std::string adapter_id;          ///< A LoRA adapter, or "none".
  std::string adapter_revision;    ///< Of its weights, or "none".
  std::string kv_dtype;            ///< "bfloat16", "fp8_e4m3"...
  std::string kv_quantization;     ///< The scheme, or "none".
  std::string kv_scales;           ///< "none", "inline" (inside the slices), or their fingerprint.
  std::string position_encoding;   ///< The effective RoPE configuration, after all overrides.
  std::string attention_backend;   ///< Memory layout, part 1: who defines the order of elements.
  std::string element_order;       ///< Part 2: "[token,2,kv_head,head_dim]".
  std::string instruction_set;     ///< Part 3: "any" unless the layout depends on it.
  std::uint32_t layers = 0;        ///< L: layers that one shard holds.
  /// Bytes of one token of one layer on one shard, scales included: L entries, or a single one
  /// when all layers are equal (the canonical form collapses equal ones).
  std::vector<std::uint64_t> bytes_per_token;
  std::uint32_t engine_block_tokens = 0;
  std::uint32_t unit_tokens = 0;   ///< U: a multiple of the engine's block.
  std::uint32_t chunk_tokens = 0;  ///< G: a multiple of U.
  std::string hash_algorithm;      ///< "sha256-chain", or "engine:sha256", "engine:sha256_cbor"...
  std::string hash_seed;  ///< "none" for our own chain, else the engine's (PYTHONHASHSEED).
  std::string codec;      ///< "none" (the only one of this version).
  std::string cipher;     ///< "none" (the only one of this version).
  ObjectLayout object_layout = ObjectLayout::kChunk;

  friend bool operator==(const NamespaceSpec&, const NamespaceSpec&) = default;

  /// Requires a valid spec and layer < layers.
  [[nodiscard]] std::uint64_t layer_bytes_per_token(std::uint32_t layer) const {
    return bytes_per_token[bytes_per_token.size() == 1 ? 0 : layer];
  }
  /// S(l): the bytes of one layer of one chunk. Requires a valid spec and layer < layers.
  [[nodiscard]] std::uint64_t slice_bytes(std::uint32_t layer) const {
    return layer_bytes_per_token(layer) * chunk_tokens;
  }
  /// Requires a valid spec.
  [[nodiscard]] std::uint32_t units_per_chunk() const { return chunk_tokens / unit_tokens; }
  /// Requires a valid spec.
  [[nodiscard]] KeySource key_source() const {
    return hash_algorithm.starts_with("engine:") ? KeySource::kEngineHash : KeySource::kOwnChain;
  }
};

/// Checks every rule and limit; the error's key is the offending field.
OBJECTCACHE_EXPORT Result<void> validate(const NamespaceSpec& spec);

/// Reads a namespace file: one JSON object with every field, in any order. Missing, repeated and
/// unknown fields are refused by name, and so is what validate() refuses.
OBJECTCACHE_EXPORT Result<NamespaceSpec> parse_namespace(std::string_view json);

/// The canonical form: JSON without spaces, fields in byte order of their names. What
/// parse_namespace() reads from it has the same canonical form. Fails where validate() fails.
OBJECTCACHE_EXPORT Result<std::string> canonical_json(const NamespaceSpec& spec);

/// SHA-256 of the canonical form. Fails where validate() fails.
OBJECTCACHE_EXPORT Result<NamespaceDigest> namespace_digest(const NamespaceSpec& spec);

/// The smallest multiple of the engine's block that is at least 64 tokens; 0 for a block of 0 or
/// beyond kTokensMax.
OBJECTCACHE_EXPORT std::uint32_t default_unit_tokens(std::uint32_t engine_block_tokens) noexcept;

/// The smallest multiple of `unit_tokens` whose slice reaches 1 MiB, at most
/// max(U, 256 rounded down to a multiple of U). With unequal layers pass the smallest
/// `bytes_per_token`. 0 if an argument is 0 or beyond its limit.
OBJECTCACHE_EXPORT std::uint32_t default_chunk_tokens(std::uint32_t unit_tokens,
                                                      std::uint64_t bytes_per_token) noexcept;

}  // namespace objectcache
