#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/layers_rows.h"
#include "objectcache/cache.h"

namespace objectcache::cli {

/// What one read came to.
struct LayersRead {
  double ttft_ms = 0;
  double first_byte_ms = 0;
  double layer0_ms = 0;  ///< When layer 0 was announced.
  double loaded_ms = 0;  ///< When the last layer was.
  double cpu_s = 0;      ///< Of the process, while it read.
  std::uint64_t requests = 0;
};

/// How it was read.
struct LayersWay {
  const char* name;
  ReadMode mode;
  bool whole_first;  ///< Computing starts when the last layer is there.
};

/// The KV of one row: written, and read back against a modelled GPU into memory whose pages are in
/// place. Threads: one. The caches and memory must outlive it.
class LayersPrefix {
 public:
  struct Memory {
    std::vector<std::byte> written;
    std::vector<std::byte> read;
    void fit(std::uint64_t bytes);  ///< Makes room, and fills `written` where it grew.
  };
  [[nodiscard]] static Result<LayersPrefix> create(const ScaledRow& row, ObjectLayout layout,
                                                   double compute_layer_ms, Cache& cache,
                                                   Memory& memory);

  /// Through a cache of the same store, perhaps without the modelled link.
  [[nodiscard]] Result<void> write(Cache& cache);
  [[nodiscard]] Result<LayersRead> read(const LayersWay& way, std::uint32_t connections);
  /// Payload bytes per second between first and last byte, of whole-object reads over 16
  /// connections that nobody computes on; repeated up to 64 MiB.
  [[nodiscard]] Result<double> payload_rate();
  /// What was read last is what was written.
  [[nodiscard]] Result<void> check() const;
  [[nodiscard]] std::string name_hex() const;                                 ///< Of the namespace.
  [[nodiscard]] std::uint64_t header_bytes() const { return header_bytes_; }  ///< Of all chunks.

 private:
  LayersPrefix(const ScaledRow& row, double compute_layer_ms, CacheNamespace space, Memory& memory)
      : row_(row), compute_layer_ms_(compute_layer_ms), space_(std::move(space)), memory_(memory) {}
  [[nodiscard]] ReadRequest request(ReadMode mode, std::uint32_t connections);

  ScaledRow row_;
  double compute_layer_ms_;
  CacheNamespace space_;
  Memory& memory_;
  std::vector<UnitKey> units_;
  std::vector<ChunkKey> chunks_;
  std::uint64_t header_bytes_ = 0;
};

}  // namespace objectcache::cli
