#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "store/object_store.h"

namespace objectcache::cache {

/// The operations that have to be cancelled when the cache is closed.
///
/// Threads: any.   Limits: as many as are running; those that have ended are swept out whenever
/// their number could have doubled.
class RunningCalls {
 public:
  /// Keeps an eye on `call`, which belongs to `loop`; cancels it at once if all were cancelled
  /// before. Owner thread of `loop`.
  void add(EventLoop& loop, const store::OperationHandle& call) {
    {
      const std::scoped_lock lock(mutex_);
      if (!cancelled_) {
        if (calls_.size() >= sweep_at_) sweep();
        calls_.push_back({&loop, call});
        return;
      }
    }
    call->cancel();
  }
  void cancel_all() {
    std::vector<Call> calls;
    {
      const std::scoped_lock lock(mutex_);
      cancelled_ = true;
      calls.swap(calls_);
    }
    for (Call& call : calls) {
      call.loop->post([weak = std::move(call.operation)] {
        if (const auto operation = weak.lock()) operation->cancel();
      });
    }
  }

 private:
  struct Call {
    EventLoop* loop;
    std::weak_ptr<store::Operation> operation;
  };

  void sweep() {
    std::erase_if(calls_, [](const Call& call) { return call.operation.expired(); });
    sweep_at_ = std::max<std::size_t>(64, calls_.size() * 2);
  }

  std::mutex mutex_;
  std::vector<Call> calls_;
  std::size_t sweep_at_ = 64;
  bool cancelled_ = false;
};

}  // namespace objectcache::cache
