#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/event_loop.h"
#include "objectcache/error.h"

namespace objectcache {

/// Runs an asynchronous call on `loop` and waits for its completion: the bridge for callers that
/// are not on a loop (the command line, the C API, Python).
///
/// `start(done)` runs on the loop's thread, starts the call with the completion `done`, and returns
/// a shared_ptr to something with cancel(). At `deadline` the call is cancelled; its completion is
/// then awaited all the same, because until it comes the call may still use the caller's memory
/// (every asynchronous call promises its completion shortly after a cancel).
///
///   auto page = run_blocking<ListPage>(loop, deadline, [&](auto done) {
///     return store.list(loop, request, std::move(done));
///   });
///
/// Threads: any but the loop's own, where it would wait for itself: refused with kInternal.
template <class T, class Start>
[[nodiscard]] Result<T> run_blocking(EventLoop& loop, TimePoint deadline, Start start) {
  if (loop.is_owner_thread()) {
    return fail(ErrorCode::kInternal, "a blocking call on the loop's own thread would never end");
  }
  using Handle = decltype(start(std::move_only_function<void(Result<T>)>()));
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result<T>> result;
    Handle handle;  // Loop thread only.
  };
  auto shared = std::make_shared<Shared>();
  loop.post([shared, start = std::move(start)]() mutable {
    auto handle = start(std::move_only_function<void(Result<T>)>([shared](Result<T> result) {
      shared->handle.reset();
      const std::lock_guard lock(shared->mutex);
      shared->result = std::move(result);
      shared->done.notify_all();
    }));
    // A completion never comes from inside the call, so the handle is still of use here.
    shared->handle = std::move(handle);
  });
  std::unique_lock lock(shared->mutex);
  const auto finished = [&] { return shared->result.has_value(); };
  if (!shared->done.wait_until(lock, deadline, finished)) {
    lock.unlock();
    loop.post([shared] {
      if (shared->handle) shared->handle->cancel();
    });
    lock.lock();
    shared->done.wait(lock, finished);
    if (!shared->result->has_value() && shared->result->error().code == ErrorCode::kCancelled) {
      shared->result->error().code = ErrorCode::kDeadlineExceeded;
      shared->result->error().message = "the deadline passed first";
    }
  }
  return std::move(*shared->result);
}

}  // namespace objectcache
