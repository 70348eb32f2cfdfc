#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/event_loop.h"
#include "cache/chunk_id.h"
#include "cache/chunk_marks.h"
#include "cache/presence_cache.h"
#include "cache/publish_task.h"
#include "store/object_store.h"

namespace objectcache::cache {

/// Who has complete chunks to publish. The publisher pulls: a source may change its mind until
/// take() was called, and its memory stays its own until then.
class PublishSource {
 public:
  virtual ~PublishSource() = default;
  /// The chunk's turn has come. Empty: no longer wanted; ended() is not called then. Any thread.
  [[nodiscard]] virtual std::optional<PublishTask::Job> take(std::uint32_t chunk) = 0;
  /// Any thread, once for each chunk that was taken, found to be stored already, or refused
  /// because the publisher is shut down.
  virtual void ended(std::uint32_t chunk, Result<PublishTask::Outcome> result) = 0;
};

/// The one queue through which all writers of a Cache publish: at most writes_in_flight_max chunks
/// are being sent, each key once at a time, and what is known to be stored is not sent at all.
///
/// Threads: any. Lifetime: must be shut down, and idle, before its loops end.
/// Limits: Options::writes_in_flight_max. The queue is bounded by the memory of the chunks in it.
class Publisher {
 public:
  struct Options {
    std::uint32_t writes_in_flight_max = 4;
    Duration put_timeout = std::chrono::seconds(60);
  };
  /// What it works with; all of it must outlive the publisher. `loops` is not empty.
  struct Parts {
    std::vector<EventLoop*> loops;
    store::ObjectStore& store;
    const WallClock& wall_clock;
    PresenceCache& presence;
    ChunkMarks& bad_objects;
  };

  Publisher(Parts parts, Options options);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Queues chunk `chunk` of `source`.
  void submit(std::shared_ptr<PublishSource> source, std::uint32_t chunk, const ChunkId& id);
  /// Cancels what is being sent and refuses the rest with kCancelled. Does not wait.
  void shut_down();
  /// False: something was still being sent at `deadline`.
  [[nodiscard]] bool wait_idle(TimePoint deadline);
  [[nodiscard]] bool is_stored(const ChunkId& id);
  [[nodiscard]] std::size_t queued() const;
  /// True on a thread that must not wait for this publisher.
  [[nodiscard]] bool on_own_thread() const;

 private:
  struct Entry {
    std::shared_ptr<PublishSource> source;
    std::uint32_t chunk = 0;
    ChunkId id;
  };
  struct InFlight {
    EventLoop* loop = nullptr;
    std::shared_ptr<PublishTask> task;  ///< Owner thread of `loop` only.
    std::vector<Entry> parked;          ///< Same key: wait for this one's result.
  };

  void pump();
  void start(Entry entry, PublishTask::Job job, std::shared_ptr<InFlight> flight);
  void on_ended(const Entry& entry, Result<PublishTask::Outcome> result);
  void refuse(const Entry& entry);

  const Parts parts_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<Entry> queue_;
  std::unordered_map<ChunkId, std::shared_ptr<InFlight>, ChunkIdHash> in_flight_;
  std::size_t next_loop_ = 0;
  std::size_t running_ = 0;  ///< Tasks that have not yet called back to the end.
  bool shut_down_ = false;
};

}  // namespace objectcache::cache
