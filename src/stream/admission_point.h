#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/event_loop.h"
#include "sched/admission.h"

namespace objectcache::stream {

/// The one admission point of a process, for streams on several loops: one sched::Admission behind
/// a lock. A stream states demands and collects its grants with update(), on its own loop; when a
/// grant comes later, its loop is woken by one posted task.
///
/// Threads: any; the calls for one stream come from the thread of its loop (add() from anywhere).
/// Never calls a listener from inside a call.
/// Limits: those of the Admission; at most one task posted and not yet run per stream.
/// Lifetimes: loops must outlive their streams, and run no task of theirs after this is destroyed
/// unless all streams were removed before.
class AdmissionPoint {
 public:
  /// Woken on its loop when there are grants to collect.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_admission() = 0;
  };
  struct Update {
    sched::Account account;
    /// Empty: as before. A demand is ignored while a grant of its kind waits to be collected.
    std::optional<sched::Demand> start;
    std::optional<sched::Demand> go_on;
  };
  /// Bytes granted since the last call; 0: none of this kind.
  struct Grants {
    std::uint64_t start_bytes = 0;
    std::uint64_t go_on_bytes = 0;
    [[nodiscard]] bool is_empty() const { return (start_bytes | go_on_bytes) == 0; }
  };

  explicit AdmissionPoint(std::unique_ptr<sched::Admission> admission);
  ~AdmissionPoint();
  AdmissionPoint(const AdmissionPoint&) = delete;
  AdmissionPoint& operator=(const AdmissionPoint&) = delete;

  /// kLimitExceeded: too many streams. Any thread.
  [[nodiscard]] Result<sched::StreamId> add(const sched::StreamInfo& info, EventLoop& loop,
                                            std::weak_ptr<Listener> listener);
  /// Tells what became of earlier grants, states demands, and collects what is granted.
  [[nodiscard]] Grants update(sched::StreamId stream, const Update& update);
  /// The stream takes no part any more; uncollected grants are void.
  void remove(sched::StreamId stream);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace objectcache::stream
