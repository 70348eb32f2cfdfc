#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "objectcache/error.h"
#include "objectcache/layer_stream.h"
#include "objectcache/types.h"

namespace objectcache::sched {

/// Names a stream of one Admission. The low 32 bits are a slot, below the limit of streams, that
/// no two streams have at a time; the high ones tell apart those that had it one after the other.
enum class StreamId : std::uint64_t {};

[[nodiscard]] constexpr std::uint32_t slot_of(StreamId stream) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(stream));
}

/// What is known of a stream when it comes. The spans need to live during add() only.
struct StreamInfo {
  Priority priority = Priority::kNormal;
  std::uint64_t group = 0;  ///< Streams of one engine step share a group; 0: on its own.
  TimePoint start{};        ///< Layer k is due at start + windows[0] + ... + windows[k - 1].
  std::span<const std::uint64_t> layer_bytes;  ///< Of all chunks together; one entry a layer.
  std::span<const Duration> windows;           ///< One entry a layer, or none: unknown.
};

/// What a stream would do next if it were allowed to.
struct Demand {
  std::uint64_t bytes = 0;  ///< 0: nothing, which withdraws the demand.
  TimePoint due{};          ///< When the first of these bytes is needed.
  friend bool operator==(const Demand&, const Demand&) = default;
};

/// A stream has at most one demand of each kind.
enum class DemandKind : std::uint8_t {
  kStart,     ///< A new range read: takes one of the requests in flight.
  kContinue,  ///< More bytes of a read that is running and held.
};

/// What became of granted bytes and requests since the last account.
struct Account {
  std::uint64_t received_bytes = 0;
  std::uint64_t released_bytes = 0;  ///< Granted, but will not be read.
  std::uint32_t requests_ended = 0;

  [[nodiscard]] bool is_empty() const {
    return (received_bytes | released_bytes | requests_ended) == 0;
  }
};

/// The one point that the reads of all streams pass: decides whose bytes are asked for next, and
/// how many. A pure state machine: reads no clock, performs no I/O; the caller tells it arrivals,
/// progress and the time, and obeys its answers.
///
/// Every granted byte is accounted for later exactly once, as received or released, and every
/// granted start as an ended request. Requires, in each call: `now` is not before that of the
/// previous call; `stream` was added and not yet removed.
///
/// Threads: one at a time (stream/admission_point.h holds the lock).
class Admission {
 public:
  struct Grant {
    StreamId stream{};
    DemandKind kind = DemandKind::kStart;
    std::uint64_t bytes = 0;  ///< 1 to what was demanded; uses up the demand.
  };
  struct Decision {
    std::optional<Grant> grant;  ///< Empty: nobody may go on now.
    /// Ask again no later than this even if nothing happens; max(): no need to.
    TimePoint wake_at = TimePoint::max();
  };

  virtual ~Admission() = default;
  /// kLimitExceeded: too many streams.
  [[nodiscard]] virtual Result<StreamId> add(const StreamInfo& info, TimePoint now) = 0;
  /// Everything granted and not yet accounted for is released, its requests have ended.
  virtual void remove(StreamId stream, TimePoint now) = 0;
  /// Replaces the stream's demand of this kind.
  virtual void demand(StreamId stream, DemandKind kind, const Demand& demand, TimePoint now) = 0;
  virtual void account(StreamId stream, const Account& account, TimePoint now) = 0;
  /// Ask until it grants no more.
  [[nodiscard]] virtual Decision next(TimePoint now) = 0;
};

}  // namespace objectcache::sched
