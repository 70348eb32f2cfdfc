#include "store/s3/put_operation.h"

#include <algorithm>
#include <utility>

#include "digest/hex.h"
#include "store/request_checks.h"
#include "store/s3/etag.h"

namespace objectcache::store_s3 {
namespace {

using store::PutAnswer;
using store::PutMode;
using store::PutOutcome;

/// Hashed in one go: about half a millisecond.
constexpr std::size_t kHashSliceBytes = std::size_t{1} << 20;

}  // namespace

std::shared_ptr<PutOperation> PutOperation::begin(Lane& lane, store::PutRequest request,
                                                  store::PutCompletion done) {
  std::shared_ptr<PutOperation> put(new PutOperation(lane, std::move(request), std::move(done)));
  put->start();
  return put;
}

bool PutOperation::must_hash() const {
  const S3Options& options = lane_.core().options;
  if (options.anonymous || options.sign_payload == SignPayload::kNever) return false;
  if (options.sign_payload == SignPayload::kAlways) return true;
  return !std::ranges::all_of(options.endpoints, [](const auto& e) { return e.tls; });
}

void PutOperation::start() {
  body_bytes_ = store::body_bytes(request_.body);
  if (request_.deadline <= lane_.loop().now()) {
    finish_later(ErrorCode::kDeadlineExceeded, "the deadline had passed before it began");
    return;
  }
  deadline_timer_ = lane_.loop().run_at(request_.deadline, [self = shared_from_this()] {
    self->deadline_timer_ = TimerId::kNone;
    // A request that runs has the same deadline and tells more about what held it up.
    if (self->call_ || self->probe_) return;
    self->finish_later(ErrorCode::kDeadlineExceeded, "the deadline passed first");
  });
  if (must_hash()) {
    lane_.loop().post([self = shared_from_this()] { self->hash_slice(); });
  } else {
    payload_hash_ = s3::kUnsignedPayload;
    next_step();
  }
}

void PutOperation::cancel() {
  if (decided_) return;
  cancelled_ = true;
  if (call_) {
    call_->cancel();
  } else if (probe_) {
    probe_->cancel();
  } else {
    finish_later(ErrorCode::kCancelled, "cancelled by the caller");
  }
}

void PutOperation::hash_slice() {
  if (decided_) return;
  std::size_t left = kHashSliceBytes;
  while (left > 0 && hash_segment_ < request_.body.size()) {
    const ConstSegment segment = request_.body[hash_segment_].subspan(hash_offset_);
    const std::size_t n = std::min(left, segment.size());
    hash_.update(segment.first(n));
    hash_offset_ += n;
    left -= n;
    if (n == segment.size()) {
      ++hash_segment_;
      hash_offset_ = 0;
    }
  }
  if (hash_segment_ < request_.body.size()) {
    lane_.loop().post([self = shared_from_this()] { self->hash_slice(); });
    return;
  }
  payload_hash_ = digest::hex(hash_.finish());
  next_step();
}

void PutOperation::next_step() {
  if (request_.mode == PutMode::kReplace) {
    send(false);
  } else {
    ask_condition();
  }
}

// ---------------------------------------------------------------- the condition

void PutOperation::ask_condition() {
  PutCondition& condition = lane_.core().put_condition;
  if (const auto state = condition.state(); state != PutCondition::State::kUnknown) {
    on_condition(state);
    return;
  }
  const auto turn =
      condition.wait(lane_.loop(), [self = shared_from_this()](Result<PutCondition::State> state) {
        if (!self->decided_) self->on_condition(std::move(state));
      });
  if (turn == PutCondition::Turn::kFull) {
    finish_later(ErrorCode::kLimitExceeded, "too many writes wait for the store's first answer");
  } else if (turn == PutCondition::Turn::kProbe) {
    probe_ = PutProbe::begin(lane_, request_.deadline,
                             [self = shared_from_this()](Result<PutCondition::State> found) {
                               self->probe_.reset();
                               self->lane_.core().put_condition.settle(found);
                               // Waits for the same completion as the others.
                             });
  }
}

void PutOperation::on_condition(Result<PutCondition::State> state) {
  if (cancelled_) {
    finish(fail(ErrorCode::kCancelled, "cancelled by the caller"));
    return;
  }
  if (!state) {
    const ErrorCode code = state.error().code;
    const bool others = code == ErrorCode::kCancelled || code == ErrorCode::kDeadlineExceeded;
    // The one who was finding out has left early; this one has not.
    if (others && lane_.loop().now() < request_.deadline) {
      ask_condition();
    } else {
      finish(std::unexpected(std::move(state.error())));
    }
    return;
  }
  if (*state == PutCondition::State::kHonoured) {
    send(true);
  } else {
    look_first();
  }
}

void PutOperation::look_first() {
  Call::Request request = call_request(Verb::kHead, "HEAD");
  request.accepted = {404};
  call_ = Call::begin(
      lane_, std::move(request), [self = shared_from_this()](Result<CallAnswer> answer) {
        self->call_.reset();
        if (!answer) return self->finish(std::unexpected(std::move(answer.error())));
        if (answer->status != 404) {
          return self->finish(PutAnswer{.outcome = PutOutcome::kAlreadyExists, .version = {}});
        }
        self->send(self->lane_.core().put_condition.state() == PutCondition::State::kUnproven);
      });
}

// ---------------------------------------------------------------- the request

Call::Request PutOperation::call_request(Verb verb, std::string method) const {
  Call::Request out;
  out.subject = {.verb = verb,
                 .action = "PUT",
                 .key = lane_.core().key_url(request_.key.text),
                 .deadline = request_.deadline,
                 .internal = true};
  out.spec.verb = verb;
  out.spec.method = std::move(method);
  out.spec.key = lane_.core().full_key(request_.key.text);
  return out;
}

void PutOperation::send(bool conditional) {
  Call::Request request = call_request(Verb::kPut, "PUT");
  request.spec.body = request_.body;
  request.spec.payload_hash = payload_hash_;
  if (conditional) {
    request.spec.headers.push_back({"If-None-Match", "*"});
    request.accepted = {412};
  }
  call_ = Call::begin(lane_, std::move(request),
                      [self = shared_from_this()](Result<CallAnswer> answer) {
                        self->call_.reset();
                        self->on_put(std::move(answer));
                      });
}

void PutOperation::on_put(Result<CallAnswer> answer) {
  if (!answer) {
    finish(std::unexpected(std::move(answer.error())));
    return;
  }
  if (answer->status == 412) {
    if (answer->maybe_done_before) {
      compare_with_ours();
    } else {
      finish(PutAnswer{.outcome = PutOutcome::kAlreadyExists, .version = {}});
    }
    return;
  }
  S3Counters::add(lane_.core().counters.bytes_written, body_bytes_);
  finish(PutAnswer{.outcome = PutOutcome::kCreated,
                   .version = version_of(http::find_header(answer->headers, "etag"))});
}

/// An earlier attempt's answer was lost and now the key exists: is it what that attempt wrote? If
/// that cannot be told, "exists already" is right as well, as equal keys mean equal worth.
void PutOperation::compare_with_ours() {
  Call::Request request = call_request(Verb::kHead, "HEAD");
  request.accepted = {404};
  call_ = Call::begin(
      lane_, std::move(request), [self = shared_from_this()](Result<CallAnswer> answer) {
        self->call_.reset();
        PutAnswer out{.outcome = PutOutcome::kAlreadyExists, .version = {}};
        if (answer && answer->status != 404) {
          const auto version = version_of(http::find_header(answer->headers, "etag"));
          if (version.text == etag_of(self->request_.body)) {
            out = {.outcome = PutOutcome::kCreated, .version = version};
            S3Counters::add(self->lane_.core().counters.bytes_written, self->body_bytes_);
          }
        } else if (!answer && answer.error().code == ErrorCode::kCancelled) {
          return self->finish(std::unexpected(std::move(answer.error())));
        }
        self->finish(std::move(out));
      });
}

// ---------------------------------------------------------------- the end

void PutOperation::finish(Result<PutAnswer> result) {
  if (decided_ && !done_) return;
  decided_ = true;
  if (deadline_timer_ != TimerId::kNone) lane_.loop().cancel_timer(deadline_timer_);
  deadline_timer_ = TimerId::kNone;
  if (!result) {
    if (result.error().action.empty()) result.error().action = "PUT";
    if (result.error().key.empty()) {
      result.error().key = lane_.core().key_url(request_.key.text);
    }
    lane_.core().counters.add_error(result.error().code);
  }
  store::PutCompletion done = std::move(done_);
  done_ = nullptr;
  done(std::move(result));
}

void PutOperation::finish_later(ErrorCode code, std::string message) {
  if (decided_) return;
  decided_ = true;
  lane_.loop().post([self = shared_from_this(), code, message = std::move(message)]() mutable {
    self->finish(fail(code, std::move(message)));
  });
}

}  // namespace objectcache::store_s3
