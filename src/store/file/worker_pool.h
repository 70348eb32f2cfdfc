#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::store {

/// Threads for system calls that block. Jobs start in the order in which they came.
///
/// Threads: submit() from any. Limits: Options. Threads are started when they are first needed.
/// Lifetimes: the destructor drops the jobs that have not begun and waits for those that have, but
/// no longer than Options::patience: a thread that hangs in the kernel is then left alone, and ends
/// when the kernel lets go of it. Jobs therefore own what they use.
class WorkerPool {
 public:
  using Job = std::move_only_function<void()>;
  struct Options {
    std::size_t threads_max = 8;
    std::size_t queued_max = 16'384;  ///< Jobs that wait for a thread.
    Duration patience = std::chrono::seconds(5);
  };

  explicit WorkerPool(Options options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False: queued_max jobs wait already, or the system gives no thread at all.
  [[nodiscard]] bool submit(Job job);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace objectcache::store
