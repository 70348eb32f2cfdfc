#include "store/s3/attempt.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace objectcache::store_s3 {
namespace {

/// More of an error's text is not worth reading.
constexpr std::uint64_t kErrorBodyBytesMax = 256 * 1024;
/// A server that has not begun to answer for that long when the deadline comes counts as failing.
constexpr Duration kSilence = std::chrono::seconds(1);

}  // namespace

std::shared_ptr<Attempt> Attempt::start(Lane& lane, AttemptRequest request,
                                        std::shared_ptr<AttemptObserver> observer) {
  std::shared_ptr<Attempt> attempt(new Attempt(lane, std::move(request), std::move(observer)));
  attempt->begin();
  return attempt;
}

std::optional<std::size_t> Attempt::endpoint() const { return endpoint_; }

void Attempt::begin() {
  lane_.core().credentials->get(lane_.loop(),
                                [self = shared_from_this()](Result<CredentialsPtr> result) {
                                  self->with_credentials(std::move(result));
                                });
}

void Attempt::with_credentials(Result<CredentialsPtr> credentials) {
  if (ended_) return;
  if (!credentials) {
    end_later(std::move(credentials.error()), true);
    return;
  }
  credentials_ = std::move(*credentials);
  const TimePoint now = lane_.loop().now();
  const auto at = lane_.core().policies.reserve(now, request_.deadline);
  if (!at) {
    end_later(fail(ErrorCode::kThrottled,
                   fmt::format("the deadline comes before this request's turn at {:.3g} "
                               "requests/s",
                               lane_.core().policies.requests_per_second()))
                  .error(),
              true);
    return;
  }
  if (*at <= now) {
    send();
    return;
  }
  timer_ = lane_.loop().run_at(*at, [self = shared_from_this()] {
    self->timer_ = TimerId::kNone;
    if (!self->ended_) self->send();
  });
}

void Attempt::send() {
  S3Core& core = lane_.core();
  const TimePoint now = lane_.loop().now();
  route_ = lane_.enter(request_.avoid);
  if (!route_) {
    end_later(fail(ErrorCode::kUnavailable, core.policies.refusal(now)).error(), true);
    return;
  }
  endpoint_ = route_->endpoint;
  S3Counters::add(core.counters.requests[static_cast<std::size_t>(request_.spec.verb)]);
  sent_at_ = now;
  exchange_deadline_ = request_.deadline;
  if (core.options.request_timeout > Duration::zero()) {
    exchange_deadline_ = std::min(exchange_deadline_, now + core.options.request_timeout);
  }
  exchange_ = route_->client->send(lane_.build(request_.spec, route_->endpoint, credentials_.get()),
                                   {.deadline = exchange_deadline_,
                                    .stall_timeout = core.options.stall_timeout,
                                    .grant_bytes = request_.grant_bytes},
                                   shared_from_this());
}

void Attempt::cancel() {
  if (ended_) return;
  if (exchange_) {
    exchange_->cancel();
    return;
  }
  if (timer_ != TimerId::kNone) {
    lane_.loop().cancel_timer(timer_);
    timer_ = TimerId::kNone;
  }
  end_later(fail(ErrorCode::kCancelled, "cancelled by the caller").error(), true);
}

void Attempt::grant(std::uint64_t bytes) {
  if (exchange_) {
    exchange_->grant(bytes);
  } else {
    request_.grant_bytes += std::min(bytes, UINT64_MAX - request_.grant_bytes);
  }
}

bool Attempt::accepts(int status) const {
  return (status >= 200 && status < 300) ||
         std::ranges::find(request_.accepted, status) != request_.accepted.end();
}

http::BodyPlan Attempt::on_head(const http::ResponseHead& head) {
  head_ = head;
  accepted_ = accepts(head.status);
  if (request_.spec.verb == Verb::kGet && head.status < 300) {
    lane_.core().policies.on_first_byte(lane_.loop().now() - sent_at_);
  }
  if (!accepted_) {
    return {
        .kind = http::BodyPlan::Kind::kCollect, .segments = {}, .bytes_max = kErrorBodyBytesMax};
  }
  return observer_->on_head(*this, head);
}

void Attempt::on_body(std::uint64_t bytes) {
  progressed_ = true;
  observer_->on_body(*this, bytes);
}

/// Says what the end of the connection tells about the server, and puts the error into terms of
/// this room: a garbled answer is not a corrupt object. A body that breaks off after some bytes
/// speaks neither for the server nor against it: a retry will show.
Health Attempt::judge_connection(Error& error) const {
  const TimePoint now = lane_.loop().now();
  switch (error.code) {
    case ErrorCode::kCorrupt:
      error.code = ErrorCode::kUnavailable;
      error.message = "the answer is broken: " + error.message;
      return progressed_ ? Health::kUnknown : Health::kFailing;
    case ErrorCode::kUnavailable:
      return progressed_ ? Health::kUnknown : Health::kFailing;
    case ErrorCode::kDeadlineExceeded:
      if (exchange_deadline_ < request_.deadline) {
        error.code = ErrorCode::kUnavailable;
        error.message = fmt::format(
            "no complete answer within the request timeout of {} ms",
            std::chrono::duration_cast<std::chrono::milliseconds>(exchange_deadline_ - sent_at_)
                .count());
      }
      return !has_head() && now - sent_at_ >= kSilence ? Health::kFailing : Health::kUnknown;
    default:
      return Health::kUnknown;
  }
}

s3::FailureMeaning Attempt::judge_answer(std::string_view body) const {
  const auto header = [&](std::string_view name) {
    return http::find_header(head_.headers, name).value_or(std::string_view());
  };
  return s3::meaning_of({.status = head_.status,
                         .document = s3::parse_error_document(body),
                         .request_id = header("x-amz-request-id"),
                         .bucket_region = header("x-amz-bucket-region"),
                         .location = header("location"),
                         .date = header("date"),
                         .retry_after = header("retry-after"),
                         .now = lane_.core().wall->now(),
                         .signing_region = lane_.core().region()});
}

void Attempt::on_end(Result<std::string> result) {
  if (ended_) return;
  S3Core& core = lane_.core();
  AttemptEnd end;
  Health health = Health::kAlive;
  if (!result && has_head() && !accepted_ && result.error().code != ErrorCode::kCancelled) {
    result = std::string();  // The answer's status counts, though its text was lost.
  }
  if (refusal_) {
    end.error = std::move(refusal_);
  } else if (!result) {
    end.error = std::move(result.error());
    health = judge_connection(*end.error);
  } else if (!accepted_) {
    end.meaning = judge_answer(*result);
    // HEAD has no text that could say SlowDown, which is what S3 means by its 503.
    if (head_.status == 503 && request_.spec.method == "HEAD") {
      end.meaning->error.code = ErrorCode::kThrottled;
    }
    end.error = std::move(end.meaning->error);
    if (end.error->code == ErrorCode::kThrottled) health = Health::kThrottled;
    if (head_.status >= 500 && health != Health::kThrottled) {
      // In S3's own words it may concern this one key; bare, it comes from a proxy before a dead
      // server.
      health = end.error->s3_code.empty() ? Health::kFailing : Health::kUnknown;
    }
  }
  if (result) end.body = std::move(*result);
  if (end.error && end.error->http_status == 0) end.error->http_status = head_.status;
  if (end.error && end.error->request_id.empty()) {
    end.error->request_id = http::find_header(head_.headers, "x-amz-request-id").value_or("");
  }
  if (health == Health::kThrottled) S3Counters::add(core.counters.throttled);
  if (has_head() && head_.status < 300) core.bucket_seen.store(true, std::memory_order_relaxed);
  core.policies.on_attempt_end(
      route_->endpoint, route_->probe, health, lane_.loop().now(),
      end.error ? std::string_view(end.error->message) : std::string_view());
  finish(std::move(end));
}

void Attempt::end_later(Error error, bool final) {
  ended_ = true;
  lane_.loop().post([self = shared_from_this(), error = std::move(error), final]() mutable {
    AttemptEnd end;
    end.error = std::move(error);
    end.final = final;
    self->finish(std::move(end));
  });
}

void Attempt::finish(AttemptEnd end) {
  ended_ = true;
  if (route_) lane_.leave(*route_);
  route_.reset();
  exchange_.reset();
  end.head = std::move(head_);
  // Both hold each other; the last call ends that.
  const auto observer = std::move(observer_);
  const auto self = shared_from_this();
  observer->on_end(*this, std::move(end));
}

}  // namespace objectcache::store_s3
