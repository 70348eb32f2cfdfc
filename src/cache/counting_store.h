#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cache/counters.h"
#include "store/object_store.h"

namespace objectcache::cache {

/// Counts the operations, the bytes and the failures of any store: what every backend has in
/// common. A store that counts its own requests is asked for them (figures()). Knows when nothing
/// is running any more, which is when a store may end.
///
/// Threads: as the store's; wait_idle() from any thread but a loop's.
class CountingStore final : public store::ObjectStore {
 public:
  CountingStore(std::unique_ptr<store::ObjectStore> store, Counters& counters)
      : store_(std::move(store)), counters_(counters) {}

  store::OperationHandle get(EventLoop& loop, store::GetRequest request,
                             store::GetCompletion done) override {
    begin(gets_);
    const std::uint64_t bytes = request.length;
    return store_->get(
        loop, std::move(request),
        [this, bytes, done = std::move(done)](Result<store::GetAnswer> answer) mutable {
          if (answer && answer->outcome == store::GetOutcome::kOk) {
            bytes_read_ += bytes;
          }
          finish(std::move(answer), done);
        });
  }
  store::OperationHandle put(EventLoop& loop, store::PutRequest request,
                             store::PutCompletion done) override {
    begin(puts_);
    std::uint64_t bytes = 0;
    for (const ConstSegment& segment : request.body) bytes += segment.size();
    return store_->put(
        loop, std::move(request),
        [this, bytes, done = std::move(done)](Result<store::PutAnswer> answer) mutable {
          if (answer && answer->outcome == store::PutOutcome::kCreated) {
            bytes_written_ += bytes;
          }
          finish(std::move(answer), done);
        });
  }
  store::OperationHandle head(EventLoop& loop, store::ObjectKey key, TimePoint deadline,
                              store::HeadCompletion done) override {
    begin(heads_);
    return store_->head(loop, std::move(key), deadline, counted(std::move(done)));
  }
  store::OperationHandle list(EventLoop& loop, store::ListRequest request,
                              store::ListCompletion done) override {
    begin(lists_);
    return store_->list(loop, std::move(request), counted(std::move(done)));
  }
  store::OperationHandle remove(EventLoop& loop, store::ObjectKey key, TimePoint deadline,
                                store::RemoveCompletion done) override {
    begin(removes_);
    return store_->remove(loop, std::move(key), deadline, counted(std::move(done)));
  }
  store::OperationHandle remove_many(EventLoop& loop, std::vector<store::ObjectKey> keys,
                                     TimePoint deadline,
                                     store::RemoveManyCompletion done) override {
    begin(removes_);
    return store_->remove_many(loop, std::move(keys), deadline, counted(std::move(done)));
  }
  [[nodiscard]] const store::StoreTraits& traits() const override { return store_->traits(); }
  /// The store's own, else what was counted here.
  [[nodiscard]] std::optional<store::StoreFigures> figures() const override {
    if (auto own = store_->figures()) return own;
    store::StoreFigures out;
    out.requests_get = gets_;
    out.requests_put = puts_;
    out.requests_head = heads_;
    out.requests_list = lists_;
    out.requests_delete = removes_;
    out.bytes_read = bytes_read_;
    out.bytes_written = bytes_written_;
    return out;
  }
  /// False: something was still running at `deadline`.
  [[nodiscard]] bool wait_idle(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    return idle_.wait_until(lock, deadline, [this] { return running_ == 0; });
  }

 private:
  void begin(std::atomic<std::uint64_t>& count) {
    ++count;
    const std::scoped_lock lock(mutex_);
    ++running_;
  }
  template <class T>
  void finish(Result<T> result, std::move_only_function<void(Result<T>)>& done) {
    // What its own caller has stopped is no failure of the store.
    if (!result && result.error().code != ErrorCode::kCancelled) {
      counters_.count_error(result.error().code);
    }
    done(std::move(result));
    done = nullptr;  // What it holds may belong to whoever waits for idleness.
    const std::scoped_lock lock(mutex_);
    if (--running_ == 0) idle_.notify_all();
  }
  template <class T>
  std::move_only_function<void(Result<T>)> counted(std::move_only_function<void(Result<T>)> done) {
    return [this, done = std::move(done)](Result<T> result) mutable {
      finish(std::move(result), done);
    };
  }

  const std::unique_ptr<store::ObjectStore> store_;
  Counters& counters_;
  std::atomic<std::uint64_t> gets_{0};
  std::atomic<std::uint64_t> puts_{0};
  std::atomic<std::uint64_t> heads_{0};
  std::atomic<std::uint64_t> lists_{0};
  std::atomic<std::uint64_t> removes_{0};
  std::atomic<std::uint64_t> bytes_read_{0};
  std::atomic<std::uint64_t> bytes_written_{0};
  std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t running_ = 0;
};

}  // namespace objectcache::cache
