#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/export.h"
#include "objectcache/types.h"

namespace objectcache {

/// Where a read puts the KV: memory of the caller, which must stay valid and untouched by others
/// until the stream has ended. Bytes of a layer are undefined until that layer is announced.
class OBJECTCACHE_EXPORT Destination {
 public:
  /// One area a layer: the slice of chunk i begins at i * S(l). Sizes are checked when the stream
  /// is opened.
  [[nodiscard]] static Destination contiguous(std::vector<Segment> layers);
  /// Paged KV: the slice of (layer l, chunk i) of n chunks fills
  /// segments[slice_starts[l * n + i]] up to (not including) segments[slice_starts[l * n + i + 1]],
  /// in token order. `slice_starts` has layers * n + 1 entries, ascending, the first 0.
  [[nodiscard]] static Destination scattered(std::vector<Segment> segments,
                                             std::vector<std::uint32_t> slice_starts);

  [[nodiscard]] bool is_contiguous() const noexcept { return slice_starts_.empty(); }
  [[nodiscard]] const std::vector<Segment>& segments() const noexcept { return segments_; }
  [[nodiscard]] const std::vector<std::uint32_t>& slice_starts() const noexcept {
    return slice_starts_;
  }

 private:
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> slice_starts_;
};

/// How the ranges of a read are chosen; docs/internals/read_plan.md compares them.
enum class ReadMode : std::uint8_t {
  kPlanned = 0,       ///< Ours: as wide as the due times allow. The default.
  kChunkwise = 1,     ///< Published, below its threshold: chunk by chunk.
  kLayerwise = 2,     ///< Published, above it: strictly layer by layer.
  kPublished = 3,     ///< The published switch between the two.
  kWholeObjects = 4,  ///< One GET a chunk, used as it arrives.
};

enum class Priority : std::uint8_t { kInteractive = 0, kNormal = 1, kBackground = 2 };

struct ReadRequest {
  /// Keys of the chunks in prefix order; at least one.
  std::vector<ChunkKey> chunks;
  /// How many leading tokens of the last chunk are wanted: a multiple of the engine's block;
  /// 0: all. The unit it ends in is fetched and verified whole, the surplus is dropped.
  std::uint32_t last_chunk_tokens = 0;
  Destination destination;
  /// c(l): how long the GPU computes layer l in the step that reads the prefix. Empty: unknown.
  std::vector<Duration> windows;
  /// The stream fails with kDeadlineExceeded then, whatever the store does.
  TimePoint deadline;
  ReadMode mode = ReadMode::kPlanned;
  Priority priority = Priority::kNormal;
  /// Range reads of this stream in flight at once, K; 0: the cache's default.
  std::uint32_t connections_max = 0;
  /// Bytes that may be requested ahead of the oldest incomplete layer; 0: derived from the
  /// measured rate and first-byte time.
  std::uint64_t lookahead_bytes = 0;
};

/// Why a stream ended early.
struct StreamFailure {
  Error error;
  /// The first chunk (index into ReadRequest::chunks) known to be missing or bad: chunks before it
  /// may still be good, a shorter read can be tried. Empty: the failure is not a chunk's.
  std::optional<std::uint32_t> chunk;
};

struct StreamStats {
  std::uint64_t requests = 0;          ///< Range reads started, re-reads included.
  std::uint64_t bytes = 0;             ///< Bytes received, headers and surplus included.
  std::uint64_t rereads = 0;           ///< Ranges read again after a failed check.
  Duration first_byte{};               ///< From open to the first byte.
  std::vector<Duration> layer_ready;   ///< From open; one entry an announced layer.
  std::vector<Duration> layer_waited;  ///< Time spent in wait(l); zero where nobody waited.
  std::uint64_t staging_bytes_peak = 0;  ///< Most memory held beside the destination.
};

/// One running read: delivers the layers of a prefix in order into the caller's memory, each
/// announced once every byte of it is verified.
///
/// Threads: any; calls may overlap. Lifetime: the Cache must outlive it. The destructor cancels
/// and waits until nothing writes to the destination any more; do not destroy it on a callback.
class OBJECTCACHE_EXPORT LayerStream {
 public:
  LayerStream(LayerStream&&) noexcept;
  LayerStream& operator=(LayerStream&&) noexcept;
  LayerStream(const LayerStream&) = delete;
  LayerStream& operator=(const LayerStream&) = delete;
  ~LayerStream();

  /// Waits until layers 0..layer are in place. Costs a load of one atomic when they are.
  /// kDeadlineExceeded: not yet, the stream goes on. Any other error: the stream has failed; layers
  /// that were announced before stay good.
  [[nodiscard]] Result<void> wait(std::uint32_t layer, TimePoint deadline);
  /// Layers 0..n-1 are verified and in place. Monotone.
  [[nodiscard]] std::uint32_t ready_layers() const noexcept;
  [[nodiscard]] std::uint32_t layers() const noexcept;
  /// Set once the stream has failed or was cancelled (kCancelled); never changes afterwards.
  [[nodiscard]] std::optional<StreamFailure> failure() const;
  /// True once nothing will be written to the destination any more.
  [[nodiscard]] bool ended() const noexcept;
  /// An eventfd, non-blocking, owned by the stream: readable after each change of ready_layers()
  /// or ended(). Read 8 bytes to reset it.
  [[nodiscard]] int event_fd() const noexcept;
  /// Asks the stream to end; returns at once, idempotent. ended() turns true later.
  void cancel() noexcept;
  /// Cancels and waits until nothing writes to the destination. kDeadlineExceeded: not yet ended.
  [[nodiscard]] Result<void> cancel_and_wait(TimePoint deadline);
  [[nodiscard]] StreamStats stats() const;

  class Impl;
  explicit LayerStream(std::shared_ptr<Impl> impl) noexcept;
  /// For the rooms of the library, not for users.
  [[nodiscard]] const std::shared_ptr<Impl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace objectcache
