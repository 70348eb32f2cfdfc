#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/event_loop.h"
#include "objectcache/error.h"

namespace objectcache {

/// The bytes of memory that a process lends to its transfers, sized at start. A reader reserves
/// before it asks the network; when all is lent, callers wait in the order in which they came (a
/// large request at the head is not overtaken, so it cannot starve).
///
/// Counts only: it allocates no buffers.
///
/// Threads: any; a waiting reservation belongs to the thread of its loop.
/// Limits: Options::capacity_bytes lent at once, Options::waiters_max waiting.
/// Lifetimes: tickets may outlive the budget; loops must outlive their reservations.
class MemoryBudget {
 public:
  struct Options {
    std::uint64_t capacity_bytes = 0;  ///< > 0.
    std::size_t waiters_max = 65'536;
  };
  struct Stats {
    std::uint64_t capacity_bytes = 0;
    std::uint64_t lent_bytes = 0;
    std::uint64_t lent_bytes_max = 0;  ///< The most that was ever lent at once.
    std::size_t waiting = 0;
  };

 private:
  struct State;
  struct Waiter;

 public:
  /// Lent bytes; gives them back when destroyed. Any thread, one at a time.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : state_(std::move(other.state_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Ticket& operator=(Ticket&& other) noexcept {
      if (this != &other) {
        release();
        state_ = std::move(other.state_);
        bytes_ = std::exchange(other.bytes_, 0);
      }
      return *this;
    }
    ~Ticket() { release(); }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Gives `bytes` (at most all) back early.
    void give_back(std::uint64_t bytes);
    void release() { give_back(bytes_); }

   private:
    friend class MemoryBudget;
    Ticket(std::shared_ptr<State> state, std::uint64_t bytes)
        : state_(std::move(state)), bytes_(bytes) {}
    std::shared_ptr<State> state_;
    std::uint64_t bytes_ = 0;
  };
  using Completion = std::move_only_function<void(Result<Ticket>)>;

  /// One waiting caller. Owner thread of its loop. Letting go of the handle does not cancel.
  class Reservation {
   public:
    virtual ~Reservation() = default;
    /// The completion still comes, exactly once: kCancelled, or the ticket if already granted.
    virtual void cancel() = 0;
  };

  explicit MemoryBudget(Options options);
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// Asks for `bytes` (> 0). `done` comes on `loop`, never from inside this call: the ticket, or
  /// kDeadlineExceeded, kCancelled, or kLimitExceeded where `bytes` exceeds the whole capacity or
  /// waiters_max others wait already.
  std::shared_ptr<Reservation> reserve(EventLoop& loop, std::uint64_t bytes, TimePoint deadline,
                                       Completion done);
  /// Only if there is room now and no one waits; else kLimitExceeded.
  [[nodiscard]] Result<Ticket> try_reserve(std::uint64_t bytes);
  [[nodiscard]] Stats stats() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace objectcache
