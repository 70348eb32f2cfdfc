#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "cache/namespace_state.h"
#include "cache/request_slots.h"
#include "objectcache/cache.h"
#include "store/object_store.h"

namespace objectcache::cache {

/// Fetches and checks the headers of a request's chunks, many at a time, and counts the leading
/// good ones: for engines that cannot recompute after a promise. In the layer-object layout the
/// header is published last and deleted first, so it vouches for the layers.
///
/// A header that fails its check is read once more before it is believed to be bad. What lies
/// behind the first missing or bad chunk is not waited for. At the deadline the answer is what is
/// known by then.
///
/// Threads: owner thread of the loop.   Limits: requests_max reads and headers in memory at once.
class ProveTask final : public store::Operation, public std::enable_shared_from_this<ProveTask> {
 public:
  struct Parts {
    EventLoop& loop;
    store::ObjectStore& store;
    RequestSlots& slots;
  };
  struct Question {
    std::shared_ptr<const NamespaceState> space;
    std::vector<ChunkKey> chunks;
    std::uint32_t requests_max = 32;
    TimePoint deadline;
  };
  struct Answer {
    Proof proof;
    std::uint64_t bytes_read = 0;
    std::optional<std::uint32_t> missing;  ///< The first chunk that is not there.
    std::optional<std::uint32_t> bad;      ///< The first chunk that failed its check.
    std::optional<Error> error;            ///< Why the count ends where it does; not for a miss.
  };
  using Done = std::move_only_function<void(Answer)>;

  /// `done` comes on the loop exactly once, never from inside this call; after it, no memory of
  /// the task is in use by the store.
  static std::shared_ptr<ProveTask> start(const Parts& parts, Question question, Done done);
  void cancel() override;

 private:
  struct Read {
    store::OperationHandle operation;
    std::unique_ptr<std::byte[]> header;
  };

  ProveTask(const Parts& parts, Question question, Done done);
  void ask_more();
  void send(std::uint32_t index, bool again);
  void on_read(std::uint32_t index, bool again, Result<store::GetAnswer> answer);
  [[nodiscard]] Result<void> check(std::uint32_t index, const store::GetAnswer& answer,
                                   ConstSegment header) const;
  void cut_off(std::uint32_t index);
  void maybe_end();

  const Parts parts_;
  const Question question_;
  Done done_;
  std::uint32_t next_ = 0;         ///< The next chunk to ask for.
  std::uint32_t end_;              ///< Chunks from here on are of no interest any more.
  std::uint32_t outstanding_ = 0;  ///< Asked for and not answered, those waiting for a slot too.
  std::map<std::uint32_t, Read> running_;
  std::vector<bool> good_;
  TimerId timer_ = TimerId::kNone;
  bool stopped_ = false;
  Answer answer_;
};

}  // namespace objectcache::cache
