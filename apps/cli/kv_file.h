#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/safetensors.h"
#include "objectcache/error.h"
#include "objectcache/namespace_spec.h"

namespace objectcache::cli {

/// Finds the tensor of each layer: as many tensors as the namespace has layers, whose names hold
/// the layer's number as their last number ("layer.0", "model.layers.12.kv"). Every tensor must be
/// [tokens, ...] with the namespace's bytes per token and dtype. Gives indices into head.tensors.
[[nodiscard]] Result<std::vector<std::size_t>> layers_of(const SafetensorsHead& head,
                                                         const NamespaceSpec& spec,
                                                         std::uint64_t tokens);

/// The tensors of a KV file of `tokens` tokens: "layer.<n>", in the order of their names as the
/// reference library writes them, shaped by the namespace's element order where that states numbers
/// ("[token,2,8,128]"), else [tokens, bytes] of U8. `order[i]` is the layer of tensors[i].
struct KvFilePlan {
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> order;
  std::uint64_t data_bytes = 0;
};
[[nodiscard]] KvFilePlan plan_kv_file(const NamespaceSpec& spec, std::uint64_t tokens);

}  // namespace objectcache::cli
