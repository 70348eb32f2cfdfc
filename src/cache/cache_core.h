#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/blocking.h"
#include "base/event_loop.h"
#include "base/gate.h"
#include "base/memory_budget.h"
#include "base/system_wall_clock.h"
#include "cache/chunk_buffer_pool.h"
#include "cache/chunk_marks.h"
#include "cache/counters.h"
#include "cache/counting_store.h"
#include "cache/namespace_state.h"
#include "cache/presence_cache.h"
#include "cache/publisher.h"
#include "cache/request_slots.h"
#include "cache/running_calls.h"
#include "cache/store_speed.h"
#include "objectcache/cache.h"
#include "store/object_store.h"
#include "stream/admission_point.h"
#include "stream/open_stream.h"

namespace objectcache::http {
class Reactor;
}
namespace objectcache::stream {
class StreamState;
}

namespace objectcache::cache {

/// Everything that one Cache owns: threads, store, memory, limits, memories of what was seen.
/// Handles share it, so that one that outlives its Cache meets a closed core, never a dangling one.
///
/// Threads: any, but for the loops' own, where nothing may wait: refused with kInvalidArgument.
/// Lifetime: close() ends all that runs; afterwards every call fails with kCancelled, and the store
/// and the threads are gone.
class CacheCore final : public std::enable_shared_from_this<CacheCore> {
 public:
  static constexpr std::size_t kNamespacesMax = 65536;
  static constexpr std::uint32_t kReactorsMax = 256;

  using StoreFactory = std::move_only_function<Result<std::unique_ptr<store::ObjectStore>>()>;
  /// kInvalidArgument: an option beyond its limits, by name. Else what the factory or the system
  /// refuse.
  [[nodiscard]] static Result<std::shared_ptr<CacheCore>> create(CacheOptions options,
                                                                 StoreFactory open_store);
  ~CacheCore();
  CacheCore(const CacheCore&) = delete;
  CacheCore& operator=(const CacheCore&) = delete;

  /// Cancels what is running and waits for it, as long as the store needs to come to an end. Not
  /// on a loop's thread. Harmless when repeated.
  void close();

  [[nodiscard]] const CacheOptions& options() const { return options_; }
  [[nodiscard]] CacheStats stats() const;
  [[nodiscard]] const store::StoreTraits& store_traits() const { return traits_; }

  [[nodiscard]] Result<std::shared_ptr<const NamespaceState>> open_namespace(NamespaceSpec spec,
                                                                             Shard shard);
  using Space = std::shared_ptr<const NamespaceState>;
  [[nodiscard]] Result<Match> match(const Space& space, std::span<const ChunkKey> chunks,
                                    TimePoint deadline, std::optional<std::uint32_t> hint);
  [[nodiscard]] Result<Proof> prove(const Space& space, std::span<const ChunkKey> chunks,
                                    TimePoint deadline);
  [[nodiscard]] Result<LayerStream> open_stream(const Space& space, ReadRequest request);
  [[nodiscard]] Result<PrefixWriter> open_writer(const Space& space,
                                                 std::span<const UnitKey> unit_keys,
                                                 std::uint32_t first_chunk);
  void forget(const Space& space, std::span<const ChunkKey> chunks);

  /// A reactor and what belongs to its thread.
  struct Lane {
    std::unique_ptr<http::Reactor> reactor;
    EventLoop* loop = nullptr;
    std::unique_ptr<RequestSlots> slots;
  };
  /// For calls that the caller waits for: starts `start(lane, store, done)` on one of the loops and
  /// waits for its completion; at `deadline`, or when the cache is closed, it is cancelled. `start`
  /// returns a shared_ptr to an Operation.
  template <class T, class Start>
  [[nodiscard]] Result<T> run(std::string_view action, TimePoint deadline, Start start) {
    if (auto ok = may_wait(action); !ok) return std::unexpected(std::move(ok.error()));
    const auto pass = gate_.enter();
    if (!pass) return closed(action);
    Lane& lane = next_lane();
    return run_blocking<T>(*lane.loop, std::min(deadline, lane.loop->now() + kWaitMax),
                           [this, &lane, start = std::move(start)](
                               std::move_only_function<void(Result<T>)> done) mutable {
                             store::OperationHandle call = start(lane, *store_, std::move(done));
                             running_.add(*lane.loop, call);
                             return call;
                           });
  }

 private:
  static constexpr Duration kWaitMax =
      std::chrono::hours(24 * 365);  ///< Of clocks, not of patience.

  /// A stream's handle, and what it has to tell when the handle is gone.
  struct OpenStream {
    std::weak_ptr<LayerStream::Impl> handle;
    std::shared_ptr<stream::StreamState> state;
  };

  explicit CacheCore(CacheOptions options);
  [[nodiscard]] Result<void> start(StoreFactory open_store);
  [[nodiscard]] Lane& next_lane() { return lanes_[next_lane_++ % lanes_.size()]; }
  [[nodiscard]] Result<void> may_wait(std::string_view action) const;
  [[nodiscard]] static std::unexpected<Error> closed(std::string_view action);
  [[nodiscard]] TimePoint now() const { return lanes_.front().loop->now(); }
  void run_what_is_posted();
  void add_stream(const LayerStream& stream);
  void fold_ended_streams();
  void on_stream_failure(const NamespaceState& space, const std::vector<ChunkKey>& chunks,
                         const StreamFailure& failure);
  void on_lost(const NamespaceState& space, const ChunkKey& key);
  void on_bad(const Space& space, const ChunkKey& key, EventLoop& loop);
  void remove_bad(const Space& space, const ChunkKey& key, EventLoop& loop);

  const CacheOptions options_;
  store::StoreTraits traits_;
  SystemWallClock wall_clock_;
  Counters counters_;
  PresenceCache presence_;
  ChunkMarks bad_objects_;
  ChunkMarks lost_;
  StoreSpeed speed_;
  MemoryBudget read_memory_;
  const std::shared_ptr<ChunkBufferPool> write_memory_;
  stream::AdmissionPoint admission_;

  std::vector<Lane> lanes_;
  std::atomic<std::size_t> next_lane_{0};
  std::unique_ptr<CountingStore> store_;
  std::unique_ptr<Publisher> publisher_;
  RunningCalls running_;
  Gate gate_;

  std::mutex close_mutex_;  ///< Held while closing: a second closer waits.
  bool closed_ = false;     ///< Guarded by close_mutex_.

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  using ScopeKey = std::pair<NamespaceDigest, Shard>;
  std::map<ScopeKey, std::pair<ScopeId, std::weak_ptr<const NamespaceState>>> spaces_;
  std::vector<OpenStream> streams_;
  std::size_t sweep_streams_at_ = 64;
  std::optional<store::StoreFigures> last_figures_;  ///< Set when the store is gone.
};

}  // namespace objectcache::cache
