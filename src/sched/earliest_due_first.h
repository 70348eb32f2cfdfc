#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <vector>

#include "sched/admission.h"
#include "sched/indexed_heap.h"

namespace objectcache::sched {

/// Admits whoever's bytes are needed first, as long as the limits allow it. Equal dues take turns.
///
/// Class enters as a delay: bytes of a lower class count as due later by Options::class_delay, so
/// that urgent work goes first and nobody starves. Work-conserving: whoever has a demand that fits
/// the limits gets a grant.
///
/// Threads: one at a time.   Limits: Options.   Memory: grows with the most streams there ever were
/// at once, about 200 bytes each; demand(), account() and next() do not allocate.
class EarliestDueFirst final : public Admission {
 public:
  struct Options {
    std::uint32_t streams_max = 1024;
    std::uint32_t requests_in_flight_max = 64;
    /// Granted and not yet accounted for, all streams together.
    std::uint64_t bytes_in_flight_max = UINT64_MAX;
    /// Under bytes_in_flight_max: a smaller rest is not worth a grant of its own.
    std::uint64_t grant_bytes_min = 64 * 1024;
    std::array<std::chrono::milliseconds, 3> class_delay{std::chrono::milliseconds{0},
                                                         std::chrono::milliseconds{50},
                                                         std::chrono::milliseconds{2000}};
  };
  struct Usage {
    std::uint32_t streams = 0;
    std::uint32_t requests_in_flight = 0;
    std::uint64_t bytes_in_flight = 0;
    std::uint32_t demands = 0;
  };

  /// Requires: every limit is at least 1.
  explicit EarliestDueFirst(const Options& options);

  [[nodiscard]] Result<StreamId> add(const StreamInfo& info, TimePoint now) override;
  void remove(StreamId stream, TimePoint now) override;
  void demand(StreamId stream, DemandKind kind, const Demand& demand, TimePoint now) override;
  void account(StreamId stream, const Account& account, TimePoint now) override;
  [[nodiscard]] Decision next(TimePoint now) override;

  [[nodiscard]] Usage usage() const;

 private:
  struct Key {
    Duration due{};          // Since the clock's epoch, the class's delay included.
    std::uint64_t turn = 0;  // Who came first among equals.
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Slot {
    std::uint32_t generation = 0;
    bool used = false;
    Duration delay{};
    std::array<Key, 2> keys{};  // By DemandKind.
    std::array<std::uint64_t, 2> wanted_bytes{};
    std::uint64_t bytes_in_flight = 0;
    std::uint32_t requests_in_flight = 0;
  };
  using Heap = IndexedHeap<Key>;

  [[nodiscard]] Slot& slot(StreamId stream);
  [[nodiscard]] StreamId id_of(std::uint32_t slot) const;

  const Options options_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::array<Heap, 2> heaps_;  // By DemandKind.
  std::uint64_t last_turn_ = 0;
  std::uint32_t streams_ = 0;
  std::uint32_t requests_in_flight_ = 0;
  std::uint64_t bytes_in_flight_ = 0;
};

}  // namespace objectcache::sched
