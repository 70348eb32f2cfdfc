#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "cache/admin.h"
#include "objectcache/error.h"

namespace objectcache::cache {

struct BadObject {
  store::ObjectKey key;
  Error error;           ///< kCorrupt or kIncompatible.
  bool removed = false;  ///< With `repair`.
};

struct VerifyReport {
  std::uint64_t chunks = 0;  ///< Checked, good or bad; one a shard.
  std::uint64_t bytes = 0;   ///< Read and checked.
  std::vector<BadObject> bad;
};

struct VerifyOptions {
  std::uint32_t parallel = 4;  ///< Chunks read at once.
  /// Removes what is bad, so that the next writer stores it anew.
  bool repair = false;
  /// Told after each chunk, by one thread at a time.
  std::function<void(const VerifyReport&)> progress;
};

/// Reads every object of a namespace from its first to its last byte and checks it: name, size,
/// header, the CRC32C of every unit of every layer. What is removed meanwhile is no fault. Memory:
/// `parallel` x max(8 MiB, one slice).
///
/// An Error: the walk could not be finished (the store failed, namespace.json is missing). A bad
/// object is no Error. Threads as for StoreView.
[[nodiscard]] Result<VerifyReport> verify_namespace(const StoreView& view, std::string_view tenant,
                                                    std::string_view namespace_hex,
                                                    const VerifyOptions& options);

}  // namespace objectcache::cache
