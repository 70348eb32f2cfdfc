#include "stream/admission_point.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace objectcache::stream {

using sched::DemandKind;

struct AdmissionPoint::State : std::enable_shared_from_this<State> {
  struct Entry {
    EventLoop* loop = nullptr;  // Null: the slot is free.
    std::weak_ptr<Listener> listener;
    Grants grants;
    bool wake_posted = false;
  };

  /// Time never goes back, although the threads' readings of the clock arrive in any order.
  TimePoint advance(TimePoint now) {
    latest = std::max(latest, now);
    return latest;
  }
  /// Hands out what may be granted now. `caller` collects by itself and needs no wake-up; the
  /// timer of a policy that grants by time runs on `loop`, that of the calling thread. Holds mutex.
  void pump(std::optional<sched::StreamId> caller, EventLoop& loop) {
    for (;;) {
      const auto decision = admission->next(advance(loop.now()));
      if (!decision.grant) {
        if (decision.wake_at < wake_at) arm(decision.wake_at, loop);
        return;
      }
      const auto& grant = *decision.grant;
      Entry& entry = entries[slot_of(grant.stream)];
      auto& bytes =
          grant.kind == DemandKind::kStart ? entry.grants.start_bytes : entry.grants.go_on_bytes;
      bytes += grant.bytes;
      if (grant.stream != caller && !entry.wake_posted) {
        entry.wake_posted = true;
        entry.loop->post([listener = entry.listener] {
          if (const auto alive = listener.lock()) alive->on_admission();
        });
      }
    }
  }
  void arm(TimePoint when, EventLoop& loop) {
    wake_at = when;
    loop.run_at(when, [weak = weak_from_this(), when, &loop] {
      const auto self = weak.lock();
      if (!self) return;
      const std::lock_guard lock(self->mutex);
      if (self->wake_at != when) return;  // An earlier one took its place.
      self->wake_at = TimePoint::max();
      self->pump(std::nullopt, loop);
    });
  }

  std::mutex mutex;
  std::unique_ptr<sched::Admission> admission;
  std::vector<Entry> entries;  // By slot.
  TimePoint latest{};
  TimePoint wake_at = TimePoint::max();
};

AdmissionPoint::AdmissionPoint(std::unique_ptr<sched::Admission> admission)
    : state_(std::make_shared<State>()) {
  state_->admission = std::move(admission);
}

AdmissionPoint::~AdmissionPoint() = default;

Result<sched::StreamId> AdmissionPoint::add(const sched::StreamInfo& info, EventLoop& loop,
                                            std::weak_ptr<Listener> listener) {
  const std::lock_guard lock(state_->mutex);
  auto added = state_->admission->add(info, state_->advance(loop.now()));
  if (!added) return added;
  const std::size_t slot = slot_of(*added);
  if (slot >= state_->entries.size()) {
    state_->entries.resize(std::max(slot + 1, 2 * state_->entries.size()));
  }
  state_->entries[slot] = {
      .loop = &loop, .listener = std::move(listener), .grants = {}, .wake_posted = false};
  return added;
}

AdmissionPoint::Grants AdmissionPoint::update(sched::StreamId stream, const Update& update) {
  const std::lock_guard lock(state_->mutex);
  auto& entry = state_->entries[slot_of(stream)];
  auto& admission = *state_->admission;
  const TimePoint now = state_->advance(entry.loop->now());
  if (!update.account.is_empty()) admission.account(stream, update.account, now);
  if (update.start && entry.grants.start_bytes == 0) {
    admission.demand(stream, DemandKind::kStart, *update.start, now);
  }
  if (update.go_on && entry.grants.go_on_bytes == 0) {
    admission.demand(stream, DemandKind::kContinue, *update.go_on, now);
  }
  state_->pump(stream, *entry.loop);
  entry.wake_posted = false;
  return std::exchange(entry.grants, {});
}

void AdmissionPoint::remove(sched::StreamId stream) {
  const std::lock_guard lock(state_->mutex);
  auto& entry = state_->entries[slot_of(stream)];
  EventLoop& loop = *entry.loop;
  entry = {};
  state_->admission->remove(stream, state_->advance(loop.now()));
  state_->pump(std::nullopt, loop);
}

}  // namespace objectcache::stream
