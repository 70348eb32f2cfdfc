#include "base/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <vector>

namespace objectcache {

struct MemoryBudget::State {
  explicit State(Options o) : options(o) {}

  /// Lends to those at the head who fit now. Call without the mutex.
  static void pump(const std::shared_ptr<State>& self);

  const Options options;
  mutable std::mutex mutex;
  std::uint64_t lent_bytes = 0;
  std::uint64_t lent_bytes_max = 0;
  std::list<std::shared_ptr<Waiter>> queue;
};

struct MemoryBudget::Waiter final : Reservation, std::enable_shared_from_this<Waiter> {
  void cancel() override {
    if (leave_queue()) {
      loop->post([self = shared_from_this()] { self->refuse(ErrorCode::kCancelled, "cancelled"); });
    }
  }
  /// True: it waited, and is now out of the queue for good.
  bool leave_queue() {
    {
      const std::lock_guard lock(state->mutex);
      if (!queued) return false;
      state->queue.erase(position);
      queued = false;
    }
    State::pump(state);  // Those behind may fit although this one did not.
    return true;
  }
  // The rest runs on the loop.
  void refuse(ErrorCode code, std::string message) {
    finish(fail(code, std::move(message), "reserve memory", fmt::format("{} bytes", bytes)));
  }
  void finish(Result<Ticket> result) {
    loop->cancel_timer(timer);
    std::exchange(done, nullptr)(std::move(result));
  }

  std::shared_ptr<State> state;
  EventLoop* loop = nullptr;
  std::uint64_t bytes = 0;
  Completion done;
  TimerId timer = TimerId::kNone;
  // Guarded by state->mutex.
  bool queued = false;
  std::list<std::shared_ptr<Waiter>>::iterator position;
};

void MemoryBudget::State::pump(const std::shared_ptr<State>& self) {
  std::vector<std::shared_ptr<Waiter>> granted;
  {
    const std::lock_guard lock(self->mutex);
    while (!self->queue.empty() &&
           self->queue.front()->bytes <= self->options.capacity_bytes - self->lent_bytes) {
      auto waiter = std::move(self->queue.front());
      self->queue.pop_front();
      waiter->queued = false;
      self->lent_bytes += waiter->bytes;
      granted.push_back(std::move(waiter));
    }
    self->lent_bytes_max = std::max(self->lent_bytes_max, self->lent_bytes);
  }
  for (auto& waiter : granted) {
    EventLoop* loop = waiter->loop;
    loop->post([ticket = Ticket(self, waiter->bytes), waiter = std::move(waiter)]() mutable {
      waiter->finish(std::move(ticket));
    });
  }
}

void MemoryBudget::Ticket::give_back(std::uint64_t bytes) {
  bytes = std::min(bytes, bytes_);
  if (bytes == 0) return;
  bytes_ -= bytes;
  {
    const std::lock_guard lock(state_->mutex);
    state_->lent_bytes -= bytes;
  }
  State::pump(state_);
  if (bytes_ == 0) state_.reset();
}

MemoryBudget::MemoryBudget(Options options) : state_(std::make_shared<State>(options)) {}
MemoryBudget::~MemoryBudget() = default;

std::shared_ptr<MemoryBudget::Reservation> MemoryBudget::reserve(EventLoop& loop,
                                                                 std::uint64_t bytes,
                                                                 TimePoint deadline,
                                                                 Completion done) {
  auto waiter = std::make_shared<Waiter>();
  waiter->state = state_;
  waiter->loop = &loop;
  waiter->bytes = bytes;
  waiter->done = std::move(done);
  const auto refuse = [&](ErrorCode code, std::string message) {
    loop.post([waiter, code, message = std::move(message)]() mutable {
      waiter->refuse(code, std::move(message));
    });
    return waiter;
  };
  const auto& options = state_->options;
  if (bytes == 0) return refuse(ErrorCode::kInvalidArgument, "nothing was asked for");
  if (bytes > options.capacity_bytes) {
    return refuse(ErrorCode::kLimitExceeded,
                  fmt::format("more than the whole memory limit of {} bytes: raise the limit",
                              options.capacity_bytes));
  }
  if (loop.now() >= deadline) {
    return refuse(ErrorCode::kDeadlineExceeded, "the deadline passed first");
  }
  bool joined = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->queue.size() < options.waiters_max) {
      waiter->position = state_->queue.insert(state_->queue.end(), waiter);
      waiter->queued = joined = true;
    }
  }
  if (!joined) {
    return refuse(ErrorCode::kLimitExceeded,
                  fmt::format("{} callers wait for memory already", options.waiters_max));
  }
  // Another thread may grant from here on, but its post cannot overtake the timer set here.
  waiter->timer = loop.run_at(deadline, [waiter] {
    if (waiter->leave_queue()) {
      waiter->refuse(ErrorCode::kDeadlineExceeded, "no memory became free before the deadline");
    }
  });
  State::pump(state_);
  return waiter;
}

Result<MemoryBudget::Ticket> MemoryBudget::try_reserve(std::uint64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->queue.empty() || bytes > state_->options.capacity_bytes - state_->lent_bytes) {
    return fail(
        ErrorCode::kLimitExceeded,
        fmt::format("{} of {} bytes are lent", state_->lent_bytes, state_->options.capacity_bytes),
        "reserve memory", fmt::format("{} bytes", bytes));
  }
  state_->lent_bytes += bytes;
  state_->lent_bytes_max = std::max(state_->lent_bytes_max, state_->lent_bytes);
  return Ticket(state_, bytes);
}

MemoryBudget::Stats MemoryBudget::stats() const {
  const std::lock_guard lock(state_->mutex);
  return {.capacity_bytes = state_->options.capacity_bytes,
          .lent_bytes = state_->lent_bytes,
          .lent_bytes_max = state_->lent_bytes_max,
          .waiting = state_->queue.size()};
}

}  // namespace objectcache
