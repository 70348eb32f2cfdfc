#pragma once

#include <cstdint>
#include <optional>

#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::sched {

enum class StreamId : std::uint64_t {};

/// What a stream would do next if it were allowed to.
struct Demand {
  std::uint64_t bytes = 0;    ///< Of its next read, or of a held read that may go on. 0: nothing.
  TimePoint due{};            ///< When the first of these bytes is needed.
  bool new_request = true;    ///< False: goes on with a read that already has its connection.
};

/// The one point that the reads of all streams pass: decides whose bytes are asked for next, and
/// how many. A pure state machine: reads no clock, performs no I/O; the caller tells it arrivals,
/// progress and the time, and obeys its answers.
///
/// Every granted byte is accounted for later exactly once, as received() or released(); every
/// granted new request by request_ended().
///
/// Threads: one at a time (stream/admission_point.h holds the lock).
class Admission {
 public:
  struct Grant {
    StreamId stream{};
    std::uint64_t bytes = 0;   ///< At most what it demanded.
    bool new_request = true;
  };
  struct Decision {
    std::optional<Grant> grant;  ///< Empty: nobody may go on now.
    /// Ask again no later than this even if nothing happens; max(): no need to.
    TimePoint wake_at = TimePoint::max();
  };

  virtual ~Admission() = default;
  /// kLimitExceeded: too many streams.
  [[nodiscard]] virtual Result<void> add(StreamId stream, TimePoint now) = 0;
  /// Everything granted and not yet accounted for is released.
  virtual void remove(StreamId stream, TimePoint now) = 0;
  /// Replaces the stream's demand. A grant uses up the demand it answers.
  virtual void demand(StreamId stream, const Demand& demand, TimePoint now) = 0;
  virtual void received(StreamId stream, std::uint64_t bytes, TimePoint now) = 0;
  virtual void released(StreamId stream, std::uint64_t bytes, TimePoint now) = 0;
  virtual void request_ended(StreamId stream, TimePoint now) = 0;
  [[nodiscard]] virtual Decision next(TimePoint now) = 0;
};

}  // namespace objectcache::sched
