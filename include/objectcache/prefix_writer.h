#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/export.h"
#include "objectcache/types.h"

namespace objectcache {

/// What became of the chunks of one PrefixWriter.
struct WriteSummary {
  std::uint32_t published = 0;        ///< New objects.
  std::uint32_t already_present = 0;  ///< Skipped or found on publishing: interchangeable KV.
  std::uint32_t dropped = 0;          ///< No room in the write budget: always from the tail.
  std::uint32_t abandoned = 0;        ///< Incomplete when the writer ended.
  std::uint32_t failed = 0;           ///< The store refused; `first_error` says why.
  std::uint64_t bytes_published = 0;
  std::vector<Error> first_error;     ///< Empty or one.
};

/// Collects the slices of a prefix as the engine computes them, in any order, and publishes each
/// chunk once it is complete. Best effort and bounded: never blocks on the store; what does not
/// fit into the write budget is dropped from the tail and counted.
///
/// Threads: any; slices of different (layer, chunk, unit) may be written at once.
/// Lifetime: the Cache must outlive it. The destructor abandons what is incomplete; chunks that
/// are complete go on in the background.
class OBJECTCACHE_EXPORT PrefixWriter {
 public:
  PrefixWriter(PrefixWriter&&) noexcept;
  PrefixWriter& operator=(PrefixWriter&&) noexcept;
  PrefixWriter(const PrefixWriter&) = delete;
  PrefixWriter& operator=(const PrefixWriter&) = delete;
  ~PrefixWriter();

  /// True if the writer wants chunk `chunk`: false once it is known to be stored or was dropped, so
  /// that the caller need not copy it out of the GPU.
  [[nodiscard]] bool wants(std::uint32_t chunk) const noexcept;
  /// Copies one layer of one chunk, G tokens in order, S(l) bytes over all segments. The memory may
  /// be reused on return. Writing a slice twice is kInvalidArgument.
  [[nodiscard]] Result<void> write_slice(std::uint32_t layer, std::uint32_t chunk,
                                         std::span<const ConstSegment> segments);
  /// Copies one layer of unit `unit` (0-based inside the chunk) alone.
  [[nodiscard]] Result<void> write_unit_slice(std::uint32_t layer, std::uint32_t chunk,
                                              std::uint32_t unit,
                                              std::span<const ConstSegment> segments);
  /// Abandons incomplete chunks and waits for the complete ones. kDeadlineExceeded: some are still
  /// under way (they go on).
  [[nodiscard]] Result<WriteSummary> finish(TimePoint deadline);
  /// Drops everything that is not yet being sent; publishes nothing more. Use it when the step
  /// that produced the KV has failed.
  void abandon() noexcept;

  class Impl;
  explicit PrefixWriter(std::shared_ptr<Impl> impl) noexcept;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace objectcache
