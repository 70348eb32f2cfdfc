#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/event_loop.h"
#include "store/file/worker_pool.h"
#include "store/object_store.h"
#include "store/request_checks.h"

namespace objectcache::store {

/// One running call of a file store, between its loop and a worker thread.
///
/// The rule it keeps: the result is decided once, and not while a worker touches the caller's
/// memory. A cancel or a deadline therefore decides at once if no worker is between begin_touch()
/// and end_touch(), else the worker decides as soon as it gets there.
///
/// Threads: start(), cancel() and completion on the loop; work() and what it calls on a worker.
/// Lifetimes: kept alive by its timer and by the worker; whoever started it need not hold it.
class FileCall : public Operation, public std::enable_shared_from_this<FileCall> {
 public:
  FileCall(EventLoop& loop, CallName name, TimePoint deadline)
      : loop_(loop), name_(std::move(name)), deadline_(deadline) {}

  void cancel() override { stop(ErrorCode::kCancelled); }
  /// `problem`: why the request is refused, if it is.
  void start(WorkerPool& pool, std::optional<std::string> problem);
  /// Hands the call to a worker, (again) with work to do.
  void enqueue(WorkerPool& pool);

 protected:
  /// Worker. Ends with decide(), or parks the call.
  virtual void work() = 0;
  /// Loop, once: calls the completion.
  virtual void complete(Error error) = 0;

  /// Worker. Holds the memory of the caller from now on. False: the call is over, do not touch it.
  [[nodiscard]] bool begin_touch();
  /// Worker. False: the call is over.
  bool end_touch();
  /// Worker. True: someone wants the call to end; end_touch() or a timer has seen to it.
  [[nodiscard]] bool is_over() const;
  /// Worker. The first decision counts; `deliver` then runs on the loop.
  void decide(std::move_only_function<void()> deliver);
  void decide_error(Error error);

  EventLoop& loop_;
  const CallName name_;
  const TimePoint deadline_;
  mutable std::mutex mutex_;
  bool decided_ = false;    // Guarded by mutex_: a completion is on its way or was called.
  bool completed_ = false;  // Loop only.

 private:
  void stop(ErrorCode reason);
  /// With mutex_ held.
  void post_completion(std::move_only_function<void()> deliver);
  [[nodiscard]] Error stop_error(ErrorCode reason) const;

  TimerId timer_ = TimerId::kNone;  // Loop only.
  std::optional<ErrorCode> stop_;   // Guarded by mutex_.
  bool touching_ = false;           // Guarded by mutex_.
};

/// A call without memory of the caller: one function on a worker gives the result.
template <class T>
class ShortFileCall final : public FileCall {
 public:
  using Completion = std::move_only_function<void(Result<T>)>;
  using Work = std::move_only_function<Result<T>(const CallName& name,
                                                 const std::function<bool()>& should_stop)>;
  ShortFileCall(EventLoop& loop, CallName name, TimePoint deadline, Work job, Completion done)
      : FileCall(loop, std::move(name), deadline), job_(std::move(job)), done_(std::move(done)) {}

 private:
  void work() override {
    if (is_over()) return;
    auto result = job_(name_, [this] { return is_over(); });
    decide([this, result = std::move(result)]() mutable {
      std::exchange(done_, nullptr)(std::move(result));
    });
  }
  void complete(Error error) override {
    std::exchange(done_, nullptr)(std::unexpected(std::move(error)));
  }

  Work job_;
  Completion done_;
};

}  // namespace objectcache::store
