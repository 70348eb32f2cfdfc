#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cache/namespace_state.h"
#include "objectcache/key_chain.h"
#include "objectcache/namespace_spec.h"

namespace objectcache::cache::testing {

/// A small valid namespace: 3 layers of 64, 32 and 64 bytes a token, blocks of 4, units of 8 and
/// chunks of 16 tokens.
inline NamespaceSpec sample_spec(ObjectLayout layout = ObjectLayout::kChunk) {
  NamespaceSpec spec;
  spec.model_architecture = "LlamaForCausalLM";
  spec.model_fingerprint = "sha256:00";
  spec.adapter_id = "none";
  spec.adapter_revision = "none";
  spec.kv_dtype = "bfloat16";
  spec.kv_quantization = "none";
  spec.kv_scales = "none";
  spec.position_encoding = "rope:theta=10000";
  spec.attention_backend = "reference";
  spec.element_order = "[token,2,kv_head,head_dim]";
  spec.instruction_set = "any";
  spec.layers = 3;
  spec.bytes_per_token = {64, 32, 64};
  spec.engine_block_tokens = 4;
  spec.unit_tokens = 8;
  spec.chunk_tokens = 16;
  spec.hash_algorithm = "sha256-chain";
  spec.hash_seed = "none";
  spec.codec = "none";
  spec.cipher = "none";
  spec.object_layout = layout;
  return spec;
}

inline std::shared_ptr<const NamespaceState> sample_space(
    ObjectLayout layout = ObjectLayout::kChunk) {
  return *NamespaceState::create(sample_spec(layout), Shard{}, "default", ScopeId{1});
}

/// The unit keys of a prompt of `chunks` chunks that is told apart by its first token.
inline std::vector<UnitKey> sample_units(const NamespaceSpec& spec, std::uint32_t chunks,
                                         TokenId first_token = 1) {
  std::vector<TokenId> tokens(std::size_t{chunks} * spec.chunk_tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i);
  if (!tokens.empty()) tokens[0] = first_token;
  return *unit_keys(spec, "salt", tokens);
}

/// The KV of one layer of one chunk, a function of the chunk's key alone: so every writer of the
/// chunk writes the same, and every reader knows what must come.
inline std::vector<std::byte> sample_slice(const NamespaceSpec& spec, const ChunkKey& key,
                                           std::uint32_t layer) {
  std::uint64_t seed = layer;
  for (std::size_t i = 0; i < 8; ++i) seed = seed * 257 + std::to_integer<unsigned>(key.bytes[i]);
  Random random(seed);
  std::vector<std::byte> out(spec.slice_bytes(layer));
  for (std::byte& byte : out) byte = static_cast<std::byte>(random.next());
  return out;
}

}  // namespace objectcache::cache::testing
