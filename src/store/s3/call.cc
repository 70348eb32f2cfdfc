#include "store/s3/call.h"

#include <utility>

namespace objectcache::store_s3 {

std::shared_ptr<Call> Call::begin(Lane& lane, Request request, Completion done) {
  std::shared_ptr<Call> call(new Call(lane, std::move(request), std::move(done)));
  call->start();
  return call;
}

void Call::try_once() {
  launch({.spec = request_.spec, .accepted = request_.accepted, .deadline = deadline()});
}

http::BodyPlan Call::on_head(Attempt&, const http::ResponseHead&) {
  return {
      .kind = http::BodyPlan::Kind::kCollect, .segments = {}, .bytes_max = request_.body_bytes_max};
}

void Call::on_attempt_end(Attempt& attempt, AttemptEnd end) {
  if (!end.error) {
    answer_.status = end.head.status;
    answer_.headers = std::move(end.head.headers);
    answer_.body = std::move(end.body);
    decide(std::nullopt);
    return;
  }
  // A 5xx does not say whether the request was carried out, either.
  if (attempt.endpoint() && (end.head.status == 0 || end.head.status >= 500)) {
    answer_.maybe_done_before = true;
  }
  retry_or_fail(std::move(end), false, attempt);
}

void Call::finish(std::optional<Error> error) {
  Completion done = std::move(done_);
  if (error) {
    done(std::unexpected(std::move(*error)));
  } else {
    done(std::move(answer_));
  }
}

}  // namespace objectcache::store_s3
