#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "base/event_loop.h"
#include "store/object_store.h"
#include "store/request_checks.h"

namespace objectcache::store {

/// A call of a store that wraps another one and starts the wrapped call later, or never. It keeps
/// the port's promises until then: cancel, deadline, one completion that never comes from inside.
///
/// Threads: owner thread of its loop.
/// Lifetimes: kept alive by its timer and by the wrapped call.
class WrappedCall : public Operation, public std::enable_shared_from_this<WrappedCall> {
 public:
  WrappedCall(EventLoop& loop, CallName name, TimePoint deadline)
      : loop_(loop), name_(std::move(name)), deadline_(deadline) {}

  void cancel() override {
    if (finished_) return;
    if (inner_) return inner_->cancel();
    give_up(name_.cancelled());
  }

  /// Goes on with begin() at `when`, unless the deadline comes first.
  void begin_at(TimePoint when) {
    timer_ = loop_.run_at(std::min(when, deadline_), [self = shared_from_this()] {
      self->timer_ = TimerId::kNone;
      if (self->finished_) return;
      if (self->loop_.now() >= self->deadline_) {
        self->finish_with(self->name_.deadline_exceeded());
      } else {
        self->begin();
      }
    });
  }
  /// Never calls the wrapped store: the completion comes soon, with `error`.
  void give_up(Error error) {
    if (finished_) return;
    stop_timer();
    loop_.post([self = shared_from_this(), error = std::move(error)]() mutable {
      self->finish_with(std::move(error));
    });
  }

 protected:
  /// Starts the wrapped call and sets inner_.
  virtual void begin() = 0;
  /// Calls the completion.
  virtual void complete(Error error) = 0;

  void finish_with(Error error) {
    if (set_finished()) complete(std::move(error));
  }
  /// False: it was finished before.
  bool set_finished() {
    if (std::exchange(finished_, true)) return false;
    stop_timer();
    inner_.reset();
    return true;
  }
  void stop_timer() { loop_.cancel_timer(std::exchange(timer_, TimerId::kNone)); }

  EventLoop& loop_;
  const CallName name_;
  const TimePoint deadline_;
  OperationHandle inner_;
  bool finished_ = false;
  TimerId timer_ = TimerId::kNone;
};

/// A wrapped call whose result is passed on as it is.
template <class T>
class PassedCall final : public WrappedCall {
 public:
  using Completion = std::move_only_function<void(Result<T>)>;
  using Start = std::move_only_function<OperationHandle(Completion)>;

  PassedCall(EventLoop& loop, CallName name, TimePoint deadline, Start start, Completion done)
      : WrappedCall(loop, std::move(name), deadline),
        start_(std::move(start)),
        done_(std::move(done)) {}

 private:
  void begin() override {
    inner_ = start_([self = shared_from_this()](Result<T> result) {
      auto& call = static_cast<PassedCall&>(*self);
      if (call.set_finished()) std::exchange(call.done_, nullptr)(std::move(result));
    });
  }
  void complete(Error error) override {
    std::exchange(done_, nullptr)(std::unexpected(std::move(error)));
  }

  Start start_;
  Completion done_;
};

}  // namespace objectcache::store
