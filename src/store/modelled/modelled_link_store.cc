#include "store/modelled/modelled_link_store.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "store/wrapped_call.h"

namespace objectcache::store {

/// One direction: knows until when it is taken.
class ModelledLinkStore::Link {
 public:
  explicit Link(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}
  /// Takes the link for `bytes`, not before `earliest`. Returns when the last one has passed.
  [[nodiscard]] TimePoint take(TimePoint earliest, std::uint64_t bytes) {
    if (bytes_per_second_ <= 0) return earliest;
    const Duration span(std::llround(static_cast<double>(bytes) * 1e9 / bytes_per_second_));
    const std::lock_guard lock(mutex_);
    free_at_ = std::max(earliest, free_at_) + span;
    return free_at_;
  }

 private:
  const double bytes_per_second_;
  std::mutex mutex_;
  TimePoint free_at_{};
};

/// A read: the wrapped store gets its grants when the link has brought the bytes.
class ModelledLinkStore::ReadCall final : public WrappedCall {
 public:
  ReadCall(EventLoop& loop, CallName name, ModelledLinkStore& store, GetRequest request,
           GetCompletion done)
      : WrappedCall(loop, std::move(name), request.deadline),
        store_(store),
        link_(store.read_link_),
        length_(request.length),
        granted_bytes_(std::exchange(request.grant_bytes, 0)),
        request_(std::move(request)),
        done_(std::move(done)) {}

  void grant(std::uint64_t bytes) override {
    granted_bytes_ += std::min(bytes, UINT64_MAX - granted_bytes_);
    if (finished_ || !inner_ || timer_ != TimerId::kNone) return;
    arrives_at_ = loop_.now();  // The link was not ours while we held still.
    next_piece();
  }

 private:
  void begin() override {
    arrives_at_ = loop_.now();
    inner_ = store_.wrapped_.get(loop_, std::move(request_),
                                 [self = shared_from_this()](Result<GetAnswer> result) {
                                   auto& call = static_cast<ReadCall&>(*self);
                                   if (call.set_finished()) {
                                     std::exchange(call.done_, nullptr)(std::move(result));
                                   }
                                 });
    next_piece();
  }
  void next_piece() {
    const std::uint64_t end = std::min(
        {length_, granted_bytes_, passed_bytes_ + std::uint64_t{store_.options_.piece_bytes}});
    if (end == passed_bytes_) return;
    const std::uint64_t bytes = end - passed_bytes_;
    // From the piece before, not from now: a late timer must not cost the link its rate.
    arrives_at_ = link_->take(arrives_at_, bytes);
    timer_ = loop_.run_at(arrives_at_, [self = shared_from_this(), bytes] {
      auto& call = static_cast<ReadCall&>(*self);
      call.timer_ = TimerId::kNone;
      if (call.finished_) return;
      call.passed_bytes_ += bytes;
      call.inner_->grant(bytes);
      call.next_piece();
    });
  }
  void complete(Error error) override {
    std::exchange(done_, nullptr)(std::unexpected(std::move(error)));
  }

  ModelledLinkStore& store_;
  const std::shared_ptr<Link> link_;
  const std::uint64_t length_;
  std::uint64_t granted_bytes_;
  std::uint64_t passed_bytes_ = 0;
  TimePoint arrives_at_{};
  GetRequest request_;
  GetCompletion done_;
};

/// A write: the wrapped store gets the body when the link has taken all of it.
class ModelledLinkStore::WriteCall final : public WrappedCall {
 public:
  WriteCall(EventLoop& loop, CallName name, ModelledLinkStore& store, PutRequest request,
            PutCompletion done)
      : WrappedCall(loop, std::move(name), request.deadline),
        store_(store),
        link_(store.write_link_),
        left_bytes_(body_bytes(request.body)),
        request_(std::move(request)),
        done_(std::move(done)) {}

 private:
  void begin() override {
    if (left_bytes_ > 0) {
      const auto bytes = std::min<std::uint64_t>(left_bytes_, store_.options_.piece_bytes);
      left_bytes_ -= bytes;
      if (sent_at_ == TimePoint{}) sent_at_ = loop_.now();
      sent_at_ = link_->take(sent_at_, bytes);
      return begin_at(sent_at_);
    }
    inner_ = store_.wrapped_.put(loop_, std::move(request_),
                                 [self = shared_from_this()](Result<PutAnswer> result) {
                                   auto& call = static_cast<WriteCall&>(*self);
                                   if (call.set_finished()) {
                                     std::exchange(call.done_, nullptr)(std::move(result));
                                   }
                                 });
  }
  void complete(Error error) override {
    std::exchange(done_, nullptr)(std::unexpected(std::move(error)));
  }

  ModelledLinkStore& store_;
  const std::shared_ptr<Link> link_;
  std::uint64_t left_bytes_;
  TimePoint sent_at_{};
  PutRequest request_;
  PutCompletion done_;
};

ModelledLinkStore::ModelledLinkStore(ObjectStore& wrapped, Options options)
    : wrapped_(wrapped),
      options_(options),
      read_link_(std::make_shared<Link>(options.read_bytes_per_second)),
      write_link_(std::make_shared<Link>(options.write_bytes_per_second)) {}
ModelledLinkStore::~ModelledLinkStore() = default;

OperationHandle ModelledLinkStore::get(EventLoop& loop, GetRequest request, GetCompletion done) {
  auto name = name_call("GET", traits().url, request.key.text);
  auto call =
      std::make_shared<ReadCall>(loop, std::move(name), *this, std::move(request), std::move(done));
  call->begin_at(loop.now() + options_.first_byte);
  return call;
}

OperationHandle ModelledLinkStore::put(EventLoop& loop, PutRequest request, PutCompletion done) {
  auto name = name_call("PUT", traits().url, request.key.text);
  auto call = std::make_shared<WriteCall>(loop, std::move(name), *this, std::move(request),
                                          std::move(done));
  call->begin_at(loop.now() + options_.first_byte);
  return call;
}

namespace {

template <class T, class Start>
OperationHandle start_passed(EventLoop& loop, CallName name, TimePoint deadline, Duration delay,
                             Start start, std::move_only_function<void(Result<T>)> done) {
  auto call = std::make_shared<PassedCall<T>>(loop, std::move(name), deadline, std::move(start),
                                              std::move(done));
  call->begin_at(loop.now() + delay);
  return call;
}

}  // namespace

OperationHandle ModelledLinkStore::head(EventLoop& loop, ObjectKey key, TimePoint deadline,
                                        HeadCompletion done) {
  auto name = name_call("HEAD", traits().url, key.text);
  return start_passed<std::optional<ObjectInfo>>(
      loop, std::move(name), deadline, options_.first_byte,
      [this, &loop, key = std::move(key), deadline](HeadCompletion passed) mutable {
        return wrapped_.head(loop, std::move(key), deadline, std::move(passed));
      },
      std::move(done));
}

OperationHandle ModelledLinkStore::list(EventLoop& loop, ListRequest request, ListCompletion done) {
  auto name = name_call("LIST", traits().url, request.prefix);
  const TimePoint deadline = request.deadline;
  return start_passed<ListPage>(
      loop, std::move(name), deadline, options_.first_byte,
      [this, &loop, request = std::move(request)](ListCompletion passed) mutable {
        return wrapped_.list(loop, std::move(request), std::move(passed));
      },
      std::move(done));
}

OperationHandle ModelledLinkStore::remove(EventLoop& loop, ObjectKey key, TimePoint deadline,
                                          RemoveCompletion done) {
  auto name = name_call("DELETE", traits().url, key.text);
  return start_passed<void>(
      loop, std::move(name), deadline, options_.first_byte,
      [this, &loop, key = std::move(key), deadline](RemoveCompletion passed) mutable {
        return wrapped_.remove(loop, std::move(key), deadline, std::move(passed));
      },
      std::move(done));
}

OperationHandle ModelledLinkStore::remove_many(EventLoop& loop, std::vector<ObjectKey> keys,
                                               TimePoint deadline, RemoveManyCompletion done) {
  auto name = name_call("DELETE", traits().url, "");
  return start_passed<std::vector<RemoveFailure>>(
      loop, std::move(name), deadline, options_.first_byte,
      [this, &loop, keys = std::move(keys), deadline](RemoveManyCompletion passed) mutable {
        return wrapped_.remove_many(loop, std::move(keys), deadline, std::move(passed));
      },
      std::move(done));
}

}  // namespace objectcache::store
