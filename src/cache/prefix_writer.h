#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cache/chunk_buffer_pool.h"
#include "cache/counters.h"
#include "cache/namespace_state.h"
#include "cache/publisher.h"
#include "objectcache/prefix_writer.h"

namespace objectcache {

/// Collects one prefix: a small state machine for each chunk, and the memory of those that are
/// being collected.
///
///   idle --first slice--> collecting --last slice--> queued --its turn--> sending --> published,
///   already present or failed. Before it is sent a chunk may be dropped (no memory, or a chunk
///   before it failed) or abandoned (by the caller).
///
/// Threads: any. Each chunk has its own lock, held for the change of state only: copying and
/// summing up run side by side.   Lifetime: kept by the publisher while chunks are under way.
class PrefixWriter::Impl final : public cache::PublishSource,
                                 public std::enable_shared_from_this<PrefixWriter::Impl> {
 public:
  struct Parts {
    std::shared_ptr<const cache::NamespaceState> space;
    std::shared_ptr<cache::ChunkBufferPool> pool;
    cache::Publisher& publisher;
    cache::Counters& counters;
    std::shared_ptr<void> keep_alive;  ///< Whatever owns the references above.
  };

  /// `unit_keys` may have a tail that fills no chunk: it is left out.
  Impl(Parts parts, std::span<const UnitKey> unit_keys, std::uint32_t first_chunk);
  ~Impl() override;

  [[nodiscard]] bool wants(std::uint32_t chunk) noexcept;
  /// The units [first_unit, first_unit + unit_count) of one layer of one chunk.
  [[nodiscard]] Result<void> write(std::uint32_t layer, std::uint32_t chunk,
                                   std::uint32_t first_unit, std::uint32_t unit_count,
                                   std::span<const ConstSegment> segments);
  [[nodiscard]] Result<WriteSummary> finish(TimePoint deadline);
  void abandon(bool complete_ones_too) noexcept;
  [[nodiscard]] WriteSummary summary() const;
  [[nodiscard]] std::uint32_t units_per_chunk() const { return layout().units(); }

  [[nodiscard]] std::optional<cache::PublishTask::Job> take(std::uint32_t chunk) override;
  void ended(std::uint32_t chunk, Result<cache::PublishTask::Outcome> result) override;

 private:
  enum class State : std::uint8_t {
    kIdle,
    kCollecting,
    kQueued,
    kSending,
    kPublished,
    kPresent,
    kDropped,
    kAbandoned,
    kFailed,
  };
  /// The memory of a chunk that is being collected. Writers hold a reference while they copy, so
  /// that a chunk may be dropped under them.
  struct Collected {
    std::shared_ptr<cache::ChunkBufferPool::Buffer> buffer;
    std::vector<format::UnitRecord> records;
    std::vector<std::atomic<std::uint8_t>> taken;  ///< 1: this (layer, unit) has a writer.
    std::atomic<std::uint64_t> missing;            ///< (layer, unit) pairs not yet complete.
  };
  struct Chunk {
    std::mutex mutex;
    std::atomic<State> state{State::kIdle};  ///< Changed under the mutex, read without.
    std::shared_ptr<Collected> collected;
  };

  [[nodiscard]] const format::ChunkLayout& layout() const { return parts_.space->layout; }
  [[nodiscard]] ChunkKey key(std::uint32_t chunk) const;
  [[nodiscard]] Result<void> check(std::uint32_t layer, std::uint32_t chunk,
                                   std::uint32_t first_unit, std::uint32_t unit_count,
                                   std::span<const ConstSegment> segments) const;
  [[nodiscard]] std::shared_ptr<Collected> collect(std::uint32_t chunk);
  [[nodiscard]] std::shared_ptr<Collected> allocate(std::uint32_t chunk);
  void copy(Collected& to, std::uint32_t layer, std::uint32_t first_unit, std::uint32_t unit_count,
            std::span<const ConstSegment> segments) const;
  void complete(std::uint32_t chunk);
  void drop_from(std::uint32_t chunk);
  [[nodiscard]] bool drop_last_behind(std::uint32_t chunk);
  void set_pending(int change);

  const Parts parts_;
  const std::vector<UnitKey> unit_keys_;
  const std::uint32_t first_chunk_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint64_t> slice_offsets_;  ///< Of each layer in the buffer.
  std::uint64_t buffer_bytes_ = 0;
  std::atomic<std::uint32_t> end_;  ///< Chunks from here on are dropped.
  std::atomic<bool> finished_{false};

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  int pending_ = 0;  ///< Chunks queued or being sent.
  std::uint64_t bytes_published_ = 0;
  std::optional<Error> first_error_;
};

}  // namespace objectcache
