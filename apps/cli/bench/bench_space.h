#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/bench_store.h"
#include "format/chunk_layout.h"
#include "objectcache/cache.h"

namespace objectcache::cli {

/// The shape of made-up KV.
struct BenchShape {
  std::uint32_t layers = 32;
  std::uint64_t bytes_per_token = 4096;  ///< Of one layer: 4,096 is Llama 3.1 8B in bf16.
  std::uint32_t unit_tokens = 64;
  std::uint32_t chunk_tokens = 256;
  std::uint32_t chunks = 1;
  std::uint64_t seed = 1;  ///< Another seed is another prompt.
};

/// A prefix of made-up KV: its keys, and its chunks as sound objects. All chunks share one payload,
/// so that gigabytes of them cost little to make; each has its own header.
///
/// Immutable. Threads: any.
class BenchSpace {
 public:
  [[nodiscard]] static Result<BenchSpace> create(const BenchShape& shape);

  [[nodiscard]] const NamespaceSpec& spec() const { return spec_; }
  [[nodiscard]] const std::vector<ChunkKey>& chunks() const { return chunks_; }
  [[nodiscard]] std::uint64_t payload_bytes() const {
    return layout_->payload_bytes() * chunks_.size();
  }
  /// S(l) x chunks: the destination of one layer.
  [[nodiscard]] std::uint64_t layer_bytes() const {
    return layout_->slice_bytes(0) * chunks_.size();
  }
  /// Puts the first `count` chunks where a Cache of the default tenant finds them.
  [[nodiscard]] Result<void> put(BenchStore& store, std::uint32_t count) const;

 private:
  BenchSpace() = default;

  NamespaceSpec spec_;
  NamespaceDigest digest_;
  std::shared_ptr<const format::ChunkLayout> layout_;
  std::vector<UnitKey> units_;
  std::vector<ChunkKey> chunks_;
};

}  // namespace objectcache::cli
