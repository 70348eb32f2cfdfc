#include "sched/earliest_due_first.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace objectcache::sched {
namespace {

constexpr std::size_t index_of(DemandKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

EarliestDueFirst::EarliestDueFirst(const Options& options) : options_(options) {
  assert(options_.streams_max > 0 && options_.requests_in_flight_max > 0);
  assert(options_.bytes_in_flight_max > 0);
}

EarliestDueFirst::Slot& EarliestDueFirst::slot(StreamId stream) {
  assert(slot_of(stream) < slots_.size());
  Slot& found = slots_[slot_of(stream)];
  assert(found.used && id_of(slot_of(stream)) == stream);
  return found;
}

StreamId EarliestDueFirst::id_of(std::uint32_t slot) const {
  return static_cast<StreamId>((std::uint64_t{slots_[slot].generation} << 32) | slot);
}

Result<StreamId> EarliestDueFirst::add(const StreamInfo& info, TimePoint /*now*/) {
  if (streams_ >= options_.streams_max) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{} streams are open: close some, or raise streams_max", streams_),
                "open stream");
  }
  if (free_slots_.empty()) {
    // Doubling keeps the cost of an arrival constant on average.
    const auto old_size = static_cast<std::uint32_t>(slots_.size());
    const std::uint32_t new_size =
        std::min(options_.streams_max, std::max<std::uint32_t>(16, 2 * old_size));
    slots_.resize(new_size);
    for (Heap& heap : heaps_) heap.grow(new_size);
    free_slots_.reserve(new_size);
    for (std::uint32_t s = new_size; s > old_size; --s) free_slots_.push_back(s - 1);
  }
  const std::uint32_t at = free_slots_.back();
  free_slots_.pop_back();
  Slot& fresh = slots_[at];
  fresh = Slot{.generation = fresh.generation + 1,
               .used = true,
               .delay = options_.class_delay[static_cast<std::size_t>(info.priority)],
               .keys = {},
               .wanted_bytes = {},
               .bytes_in_flight = 0,
               .requests_in_flight = 0};
  ++streams_;
  return id_of(at);
}

void EarliestDueFirst::remove(StreamId stream, TimePoint /*now*/) {
  Slot& old = slot(stream);
  bytes_in_flight_ -= old.bytes_in_flight;
  requests_in_flight_ -= old.requests_in_flight;
  for (Heap& heap : heaps_) heap.erase(slot_of(stream));
  old.used = false;
  free_slots_.push_back(slot_of(stream));
  --streams_;
}

void EarliestDueFirst::demand(StreamId stream, DemandKind kind, const Demand& demand,
                              TimePoint /*now*/) {
  const std::size_t k = index_of(kind);
  Slot& s = slot(stream);
  Heap& heap = heaps_[k];
  s.wanted_bytes[k] = demand.bytes;
  if (demand.bytes == 0) {
    heap.erase(slot_of(stream));
    return;
  }
  const Duration due = demand.due.time_since_epoch() + s.delay;
  // Whoever only changes the size of what it waits for keeps its turn.
  const bool keeps_turn = heap.contains(slot_of(stream)) && s.keys[k].due == due;
  s.keys[k] = {.due = due, .turn = keeps_turn ? s.keys[k].turn : ++last_turn_};
  heap.set(slot_of(stream), s.keys[k]);
}

void EarliestDueFirst::account(StreamId stream, const Account& account, TimePoint /*now*/) {
  Slot& s = slot(stream);
  const std::uint64_t accounted = account.received_bytes + account.released_bytes;
  assert(accounted <= s.bytes_in_flight && account.requests_ended <= s.requests_in_flight);
  // A stream that miscounts must not make the limits of all others meaningless.
  const std::uint64_t bytes = std::min(accounted, s.bytes_in_flight);
  const std::uint32_t requests = std::min(account.requests_ended, s.requests_in_flight);
  s.bytes_in_flight -= bytes;
  bytes_in_flight_ -= bytes;
  s.requests_in_flight -= requests;
  requests_in_flight_ -= requests;
}

Admission::Decision EarliestDueFirst::next(TimePoint /*now*/) {
  const Heap& starts = heaps_[index_of(DemandKind::kStart)];
  const Heap& continues = heaps_[index_of(DemandKind::kContinue)];
  const bool may_start = !starts.empty() && requests_in_flight_ < options_.requests_in_flight_max;
  if (!may_start && continues.empty()) return {};

  DemandKind kind = may_start ? DemandKind::kStart : DemandKind::kContinue;
  if (may_start && !continues.empty()) {
    const Key& start = slots_[starts.top()].keys[index_of(DemandKind::kStart)];
    const Key& go_on = slots_[continues.top()].keys[index_of(DemandKind::kContinue)];
    if (go_on < start) kind = DemandKind::kContinue;
  }
  const std::size_t k = index_of(kind);
  const std::uint32_t at = heaps_[k].top();
  Slot& s = slots_[at];
  const std::uint64_t room = options_.bytes_in_flight_max - bytes_in_flight_;
  const std::uint64_t bytes = std::min(s.wanted_bytes[k], room);
  // The first in line waits for room rather than be overtaken by smaller ones for ever. With
  // nothing in flight any room is enough: no more will ever come.
  if (bytes < std::min(s.wanted_bytes[k], options_.grant_bytes_min) && bytes_in_flight_ > 0) {
    return {};
  }
  heaps_[k].erase(at);
  s.wanted_bytes[k] = 0;
  s.bytes_in_flight += bytes;
  bytes_in_flight_ += bytes;
  if (kind == DemandKind::kStart) {
    ++s.requests_in_flight;
    ++requests_in_flight_;
  }
  return {.grant = Grant{.stream = id_of(at), .kind = kind, .bytes = bytes},
          .wake_at = TimePoint::max()};
}

EarliestDueFirst::Usage EarliestDueFirst::usage() const {
  return {.streams = streams_,
          .requests_in_flight = requests_in_flight_,
          .bytes_in_flight = bytes_in_flight_,
          .demands = heaps_[0].size() + heaps_[1].size()};
}

}  // namespace objectcache::sched
