#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "cache/chunk_marks.h"
#include "cache/counters.h"
#include "cache/namespace_state.h"
#include "cache/presence_cache.h"
#include "cache/request_slots.h"
#include "objectcache/cache.h"
#include "plan/prefix_search.h"
#include "store/object_store.h"

namespace objectcache::cache {

/// Finds how many leading chunks are stored: obeys plan::PrefixSearch, answering its probes from
/// the presence cache or by HEADs of the object that carries the chunk's header.
///
/// An object of the wrong size, or one that was seen bad, is no hit. A probe that fails counts as
/// absent, for this match only: a store in trouble shortens hits, it does not hold up the caller.
/// At the deadline the answer is what is known by then.
///
/// Threads: owner thread of the loop.   Limits: probes_max HEADs at once, and those of the slots.
class MatchTask final : public store::Operation, public std::enable_shared_from_this<MatchTask> {
 public:
  /// What it works with; all of it must outlive the task.
  struct Parts {
    EventLoop& loop;
    store::ObjectStore& store;
    RequestSlots& slots;
    PresenceCache& presence;
    ChunkMarks& bad_objects;
    ChunkMarks& lost;  ///< Asked about first.
    Counters& counters;
  };
  struct Question {
    std::shared_ptr<const NamespaceState> space;
    std::vector<ChunkKey> chunks;
    std::uint32_t probes_max = 34;
    std::optional<std::uint32_t> hint;
    TimePoint deadline;
  };
  /// An error only if nothing was found and a probe failed for another reason than the deadline.
  using Done = std::move_only_function<void(Result<Match>)>;

  /// `done` comes on the loop exactly once, never from inside this call.
  static std::shared_ptr<MatchTask> start(const Parts& parts, Question question, Done done);
  void cancel() override;

 private:
  MatchTask(const Parts& parts, Question question, Done done);
  void begin();
  void scan_memory();
  void start_search();
  void next_round();
  void probe(std::uint32_t index);
  void ask(std::uint32_t index);
  void send(std::uint32_t index);
  void on_head(std::uint32_t index, Result<std::optional<store::ObjectInfo>> found);
  [[nodiscard]] bool judge(std::uint32_t index, const std::optional<store::ObjectInfo>& info);
  void report(std::uint32_t index, bool present);
  [[nodiscard]] std::uint32_t known_by_now() const;
  void end(Result<Match> result);
  [[nodiscard]] ChunkId id(std::uint32_t index) const {
    return question_.space->id(question_.chunks[index]);
  }

  const Parts parts_;
  const Question question_;
  Done done_;
  std::optional<plan::PrefixSearch> search_;
  std::uint32_t count_ = 0;                ///< Chunks that memory does not rule out.
  std::uint32_t at_least_ = 0;             ///< Leading chunks present, from memory.
  std::map<std::uint32_t, bool> answers_;  ///< Of this search: a few dozen.
  std::map<std::uint32_t, store::OperationHandle> running_;
  TimerId timer_ = TimerId::kNone;
  Match match_;
  std::optional<Error> first_error_;
};

}  // namespace objectcache::cache
