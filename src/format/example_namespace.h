#pragma once

#include "objectcache/namespace_spec.h"

namespace objectcache::format {

/// The namespace of the test vectors in docs/formats/. For tests only.
inline NamespaceSpec example_namespace() {
  return {.format_version = 1,
          .model_architecture = "LlamaForCausalLM",
          .model_fingerprint = "sha256:00",
          .adapter_id = "none",
          .adapter_revision = "none",
          .kv_dtype = "bfloat16",
          .kv_quantization = "none",
          .kv_scales = "none",
          .position_encoding = "rope theta=10000",
          .attention_backend = "flash",
          .element_order = "[token,2,kv_head,head_dim]",
          .instruction_set = "any",
          .layers = 2,
          .bytes_per_token = {4, 8},
          .engine_block_tokens = 1,
          .unit_tokens = 2,
          .chunk_tokens = 4,
          .hash_algorithm = "sha256-chain",
          .hash_seed = "none",
          .codec = "none",
          .cipher = "none",
          .object_layout = ObjectLayout::kChunk};
}

/// 32 layers of 4,096 bytes a token: the shape of Llama 3.1 8B. For tests only.
inline NamespaceSpec llama_namespace() {
  NamespaceSpec spec = example_namespace();
  spec.layers = 32;
  spec.bytes_per_token = {4096};
  spec.engine_block_tokens = 16;
  spec.unit_tokens = 64;
  spec.chunk_tokens = 256;
  return spec;
}

}  // namespace objectcache::format
