#include "store/file/file_call.h"

namespace objectcache::store {

void FileCall::start(WorkerPool& pool, std::optional<std::string> problem) {
  if (problem) {
    return decide_error(name_.error(ErrorCode::kInvalidArgument, std::move(*problem)));
  }
  if (loop_.now() >= deadline_) return decide_error(name_.deadline_exceeded());
  timer_ = loop_.run_at(deadline_, [self = shared_from_this()] {
    self->timer_ = TimerId::kNone;
    self->stop(ErrorCode::kDeadlineExceeded);
  });
  enqueue(pool);
}

void FileCall::enqueue(WorkerPool& pool) {
  if (!pool.submit([self = shared_from_this()] { self->work(); })) {
    decide_error(name_.error(ErrorCode::kLimitExceeded,
                             "too many calls wait for the file system; ask for less at once"));
  }
}

void FileCall::stop(ErrorCode reason) {
  const std::lock_guard lock(mutex_);
  if (decided_ || stop_) return;
  stop_ = reason;
  if (touching_) return;  // end_touch() goes on.
  post_completion([this, reason] { complete(stop_error(reason)); });
}

Error FileCall::stop_error(ErrorCode reason) const {
  return reason == ErrorCode::kCancelled ? name_.cancelled() : name_.deadline_exceeded();
}

bool FileCall::begin_touch() {
  const std::lock_guard lock(mutex_);
  if (decided_ || stop_) return false;
  touching_ = true;
  return true;
}

bool FileCall::end_touch() {
  const std::lock_guard lock(mutex_);
  touching_ = false;
  if (stop_ && !decided_) {
    post_completion([this, reason = *stop_] { complete(stop_error(reason)); });
  }
  return !decided_;
}

bool FileCall::is_over() const {
  const std::lock_guard lock(mutex_);
  return decided_ || stop_.has_value();
}

void FileCall::decide(std::move_only_function<void()> deliver) {
  const std::lock_guard lock(mutex_);
  if (!decided_) post_completion(std::move(deliver));
}

void FileCall::decide_error(Error error) {
  decide([this, error = std::move(error)]() mutable { complete(std::move(error)); });
}

void FileCall::post_completion(std::move_only_function<void()> deliver) {
  decided_ = true;
  loop_.post([self = shared_from_this(), deliver = std::move(deliver)]() mutable {
    // Waits until the poster has left post(): after the completion the loop may be destroyed.
    {
      const std::lock_guard lock(self->mutex_);
    }
    self->loop_.cancel_timer(std::exchange(self->timer_, TimerId::kNone));
    self->completed_ = true;
    deliver();
  });
}

}  // namespace objectcache::store
