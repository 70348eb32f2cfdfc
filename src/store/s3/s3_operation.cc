#include "store/s3/s3_operation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace objectcache::store_s3 {

void S3Operation::start() {
  inside_call_ = true;
  if (subject_.deadline <= lane_.loop().now()) {
    decide(fail(ErrorCode::kDeadlineExceeded, "the deadline had passed before it began").error());
  } else {
    deadline_timer_ = lane_.loop().run_at(subject_.deadline, [self = shared_from_this()] {
      self->deadline_timer_ = TimerId::kNone;
      self->decide(self->deadline_error());
    });
    try_once();
  }
  inside_call_ = false;
}

Error S3Operation::deadline_error() const {
  Error error = fail(ErrorCode::kDeadlineExceeded, "the deadline passed first").error();
  if (last_failure_) {
    error.message +=
        fmt::format(" ({} failed attempts; last: {})", failures(), last_failure_->message);
    error.s3_code = last_failure_->s3_code;
    error.request_id = last_failure_->request_id;
    error.http_status = last_failure_->http_status;
  }
  return error;
}

void S3Operation::cancel() {
  if (decided_) return;
  inside_call_ = true;
  decide(fail(ErrorCode::kCancelled, "cancelled by the caller").error());
  inside_call_ = false;
}

std::shared_ptr<Attempt> S3Operation::launch(AttemptRequest request) {
  request.avoid = avoid_;
  request.deadline = subject_.deadline;
  auto attempt = Attempt::start(lane_, std::move(request), shared_from_this());
  live_.push_back(attempt);
  return attempt;
}

void S3Operation::on_end(Attempt& attempt, AttemptEnd end) {
  // Keeps the attempt alive as well: it is a parameter of what follows.
  const auto it =
      std::ranges::find_if(live_, [&](const auto& live) { return live.get() == &attempt; });
  const std::shared_ptr<Attempt> ended = *it;
  live_.erase(it);
  if (!decided_) on_attempt_end(attempt, std::move(end));
  maybe_finish();
}

void S3Operation::decide(std::optional<Error> error) {
  if (decided_) return;
  decided_ = true;
  outcome_ = std::move(error);
  if (deadline_timer_ != TimerId::kNone) lane_.loop().cancel_timer(deadline_timer_);
  if (retry_timer_ != TimerId::kNone) lane_.loop().cancel_timer(retry_timer_);
  deadline_timer_ = retry_timer_ = TimerId::kNone;
  on_decided();
  for (const auto& attempt : live_) attempt->cancel();
  maybe_finish();
}

void S3Operation::maybe_finish() {
  if (!decided_ || !live_.empty() || finish_posted_) return;
  finish_posted_ = true;
  const auto tell = [](S3Operation& self) {
    if (self.outcome_) {
      if (!self.subject_.internal) self.core().counters.add_error(self.outcome_->code);
      self.outcome_ = self.named(std::move(*self.outcome_));
    }
    self.finish(std::move(self.outcome_));
  };
  if (inside_call_) {
    lane_.loop().post([self = shared_from_this(), tell] { tell(*self); });
  } else {
    const auto self = shared_from_this();
    tell(*self);
  }
}

Error S3Operation::named(Error error) const {
  if (error.action.empty()) error.action = subject_.action;
  if (error.key.empty()) error.key = subject_.key;
  return error;
}

void S3Operation::retry_at(TimePoint when) {
  retry_timer_ = lane_.loop().run_at(when, [self = shared_from_this()] {
    self->retry_timer_ = TimerId::kNone;
    if (!self->decided_) self->try_once();
  });
}

void S3Operation::retry_or_fail(AttemptEnd end, bool progressed, const Attempt& attempt) {
  if (mend(end, attempt)) {
    S3Counters::add(core().counters.retries);
    retry_at(lane_.loop().now());
    return;
  }
  avoid_ = attempt.endpoint();
  if (end.error->code == ErrorCode::kDeadlineExceeded) {
    decide(deadline_error());
    return;
  }
  Error error = std::move(*end.error);
  if (end.final) {
    if (last_failure_) error.message += fmt::format("; before: {}", last_failure_->message);
    decide(std::move(error));
    return;
  }
  const AttemptFailure failure{
      .error = error,
      .retry_after = end.meaning && end.meaning->retry_after
                         ? std::optional<Duration>(*end.meaning->retry_after)
                         : std::nullopt,
      .progressed = progressed};
  const RetryPolicy::Decision decision =
      retry_.after_failure(lane_.loop().now(), subject_.deadline, failure, lane_.random());
  last_failure_ = error;
  if (decision.retry) {
    S3Counters::add(core().counters.retries);
    retry_at(decision.at);
    return;
  }
  explain(error);
  if (!decision.reason.empty()) error.message += " (" + decision.reason + ")";
  decide(std::move(error));
}

/// Each mend is tried once an operation; a second answer of the same kind is the final one.
bool S3Operation::mend(const AttemptEnd& end, const Attempt& attempt) {
  switch (end.kind()) {
    case s3::FailureKind::kWrongRegion:
      return !std::exchange(region_mended_, true) && core().adopt_region(end.meaning->right_region);
    case s3::FailureKind::kClockSkew:
      if (std::exchange(clock_mended_, true) || !end.meaning->clock_offset) return false;
      core().clock_offset_s.store(end.meaning->clock_offset->count(), std::memory_order_relaxed);
      return true;
    case s3::FailureKind::kCredentialsExpired:
      return !std::exchange(credentials_mended_, true) && attempt.credentials() &&
             core().credentials->renew(attempt.credentials());
    default:
      return false;
  }
}

/// Adds what only the operation knows about the cause.
void S3Operation::explain(Error& error) const {
  const bool reads = subject_.verb == Verb::kGet || subject_.verb == Verb::kHead;
  const bool says_why = !error.s3_code.empty() && error.s3_code != "AccessDenied";
  if (error.http_status == 403 && reads && !says_why) {
    error.message +=
        "; without the right to list the bucket (s3:ListBucket) a store answers so for keys that "
        "do not exist, too";
  }
}

}  // namespace objectcache::store_s3
