#include "store/s3/get_operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "s3/ranges.h"
#include "store/s3/etag.h"

namespace objectcache::store_s3 {
namespace {

using http::BodyPlan;
using store::GetOutcome;

BodyPlan abort_plan() { return {.kind = BodyPlan::Kind::kAbort, .segments = {}}; }

}  // namespace

std::shared_ptr<GetOperation> GetOperation::begin(Lane& lane, store::GetRequest request,
                                                  store::GetCompletion done) {
  Subject subject{.verb = Verb::kGet,
                  .action = "GET",
                  .key = lane.core().key_url(request.key.text),
                  .deadline = request.deadline};
  std::shared_ptr<GetOperation> get(
      new GetOperation(lane, std::move(subject), std::move(request), std::move(done)));
  get->start();
  return get;
}

// ---------------------------------------------------------------- sending

AttemptRequest GetOperation::attempt_request() const {
  AttemptRequest out;
  out.spec.verb = Verb::kGet;
  out.spec.method = "GET";
  out.spec.key = core().full_key(request_.key.text);
  out.spec.headers.push_back({"Range", s3::format_range({.offset = request_.offset + delivered_,
                                                         .length = request_.length - delivered_})});
  if (version_) out.spec.headers.push_back({"If-Match", version_->text});
  out.grant_bytes = granted_ == UINT64_MAX ? granted_ : granted_ - std::min(granted_, delivered_);
  return out;
}

std::vector<Segment> GetOperation::rest_of_destination() const {
  std::vector<Segment> out;
  std::uint64_t skip = delivered_;
  for (const Segment& segment : request_.destination) {
    if (skip >= segment.size()) {
      skip -= segment.size();
      continue;
    }
    out.push_back(segment.subspan(skip));
    skip = 0;
  }
  return out;
}

void GetOperation::try_once() {
  main_from_ = delivered_;
  pending_ = {};
  hedge_ = {};
  main_ = launch(attempt_request());
  arm_hedge();
}

void GetOperation::grant(std::uint64_t bytes) {
  if (granted_ == UINT64_MAX || decided()) return;
  granted_ += std::min(bytes, UINT64_MAX - granted_);
  if (main_) main_->grant(bytes);
  if (hedge_.attempt) hedge_.attempt->grant(bytes);
}

// ---------------------------------------------------------------- the answer

bool GetOperation::accept_body(Attempt& attempt, const http::ResponseHead& head) {
  const s3::ByteRange asked{.offset = request_.offset + delivered_,
                            .length = request_.length - delivered_};
  const auto refuse = [&](ErrorCode code, std::string message) {
    attempt.refuse(fail(code, std::move(message)).error());
    return false;
  };
  const auto coding = http::find_header(head.headers, "content-encoding");
  if (coding && *coding != "identity" && *coding != "aws-chunked" && !coding->empty()) {
    return refuse(ErrorCode::kUnsupported,
                  fmt::format("something on the way re-codes bodies (Content-Encoding: {}); ranges "
                              "of them are useless: switch that off",
                              coding->substr(0, 64)));
  }
  const s3::RangeAnswer answer = s3::judge_range_answer(
      asked, head.status, http::find_header(head.headers, "content-range"), head.content_length);
  const store::ObjectVersion version = version_of(http::find_header(head.headers, "etag"));
  switch (answer.verdict) {
    case s3::RangeVerdict::kExact:
      break;
    case s3::RangeVerdict::kObjectShorter:
      // After bytes of it were delivered, a shorter object is another one.
      found_ = delivered_ > 0 || (version_ && *version_ != version) ? GetOutcome::kVersionChanged
                                                                    : GetOutcome::kOutOfRange;
      return false;
    case s3::RangeVerdict::kRangeIgnored:
      return refuse(ErrorCode::kUnsupported,
                    "the server ignores the Range header: it answered 200 with the whole object");
    case s3::RangeVerdict::kContradictory:
      return refuse(
          ErrorCode::kUnavailable,
          fmt::format(
              "the answer to bytes {}+{} contradicts itself: status {}, "
              "Content-Range '{}', Content-Length {}",
              asked.offset, asked.length, head.status,
              http::find_header(head.headers, "content-range").value_or("none").substr(0, 64),
              head.content_length ? std::to_string(*head.content_length) : std::string("none")));
  }
  if (version.text.empty()) {
    return refuse(ErrorCode::kUnsupported,
                  "the answer has no ETag, so nothing says which version the bytes are of");
  }
  // Servers that do not know If-Match answer with whatever is there now.
  if (version_ && *version_ != version) {
    found_ = GetOutcome::kVersionChanged;
    return false;
  }
  version_ = version;
  object_bytes_ = answer.object_bytes.value_or(0);
  return true;
}

BodyPlan GetOperation::on_head(Attempt& attempt, const http::ResponseHead& head) {
  const bool is_hedge = &attempt == hedge_.attempt.get();
  // The one that lost is being closed already.
  if (decided() || (is_hedge ? hedge_.closing : hedge_.leads)) return abort_plan();
  if (!accept_body(attempt, head)) return abort_plan();
  if (is_hedge) {
    hedge_.leads = true;
    S3Counters::add(core().counters.hedges_won);
    if (main_) main_->cancel();
    return {.kind = BodyPlan::Kind::kSegments,
            .segments = {Segment(hedge_.buffer.get(), hedge_.length)}};
  }
  if (hedge_.attempt) {
    hedge_.closing = true;
    hedge_.attempt->cancel();
  }
  return {.kind = BodyPlan::Kind::kSegments, .segments = rest_of_destination()};
}

void GetOperation::on_body(Attempt& attempt, std::uint64_t bytes) {
  if (decided()) return;
  if (&attempt == main_.get()) {
    deliver(main_from_ + bytes);
  } else if (&attempt == hedge_.attempt.get()) {
    hedge_.received = bytes;
    copy_from_hedge();
  }
}

void GetOperation::deliver(std::uint64_t bytes) {
  if (bytes <= delivered_) return;
  core().policies.on_bytes(lane().loop().now(), bytes - delivered_);
  S3Counters::add(core().counters.bytes_read, bytes - delivered_);
  delivered_ = bytes;
  if (request_.on_bytes) request_.on_bytes(delivered_, *version_);
}

// ---------------------------------------------------------------- the end of an attempt

void GetOperation::settle(GetOutcome outcome) {
  outcome_ = outcome;
  decide(std::nullopt);
}

void GetOperation::on_attempt_end(Attempt& attempt, AttemptEnd end) {
  if (found_) {
    settle(*found_);
    return;
  }
  if (&attempt == hedge_.attempt.get()) {
    on_hedge_end(std::move(end));
    return;
  }
  const std::shared_ptr<Attempt> ended = std::exchange(main_, nullptr);
  if (hedge_timer_ != TimerId::kNone) lane().loop().cancel_timer(hedge_timer_);
  hedge_timer_ = TimerId::kNone;
  if (hedge_.leads) {
    copy_from_hedge();
    if (!decided() && !hedge_.attempt) fail_attempt(*pending_.from, std::move(pending_.end));
    return;
  }
  if (!end.error) deliver(request_.length);
  if (delivered_ == request_.length) {
    settle(GetOutcome::kOk);  // Whatever the connection suffered after the last byte.
    return;
  }
  if (hedge_.attempt) {
    // The hedge may bring the bytes sooner than a retry; unless the failure is an answer that
    // another request would only repeat.
    if (!is_retried(*end.error)) {
      hedge_.closing = true;
      hedge_.attempt->cancel();
    }
    pending_ = {ended, std::move(end)};
    return;
  }
  fail_attempt(*ended, std::move(end));
}

/// Some failures are outcomes; the others are for the retry policy.
void GetOperation::fail_attempt(Attempt& attempt, AttemptEnd end) {
  switch (end.kind()) {
    case s3::FailureKind::kMissing:
      settle(GetOutcome::kMissing);
      return;
    case s3::FailureKind::kPreconditionFailed:
      settle(GetOutcome::kVersionChanged);
      return;
    case s3::FailureKind::kOutOfRange:
      // After bytes of it were delivered, a shorter object is another one.
      settle(delivered_ > 0 ? GetOutcome::kVersionChanged : GetOutcome::kOutOfRange);
      return;
    default:
      retry_or_fail(std::move(end), delivered_ > main_from_, attempt);
  }
}

void GetOperation::finish(std::optional<Error> error) {
  store::GetCompletion done = std::move(done_);
  request_.on_bytes = nullptr;
  if (error) {
    done(std::unexpected(std::move(*error)));
    return;
  }
  store::GetAnswer answer{.outcome = outcome_, .version = {}, .object_bytes = 0};
  if (outcome_ == GetOutcome::kOk) {
    answer.version = *version_;
    answer.object_bytes = object_bytes_;
  }
  done(std::move(answer));
}

void GetOperation::on_decided() {
  if (hedge_timer_ != TimerId::kNone) lane().loop().cancel_timer(hedge_timer_);
  hedge_timer_ = TimerId::kNone;
  if (hedge_.attempt) {
    give_budget_back();
    hedge_.attempt = nullptr;  // S3Operation still waits for its end, and the buffer stays.
  }
}

// ---------------------------------------------------------------- the hedge

void GetOperation::arm_hedge() {
  if (hedged_) return;
  const auto wait = core().policies.hedge_wait(request_.length - delivered_);
  if (!wait) return;
  hedge_timer_ =
      lane().loop().run_at(lane().loop().now() + *wait,
                           [self = std::static_pointer_cast<GetOperation>(shared_from_this())] {
                             self->hedge_timer_ = TimerId::kNone;
                             self->start_hedge();
                           });
}

void GetOperation::start_hedge() {
  if (decided() || !main_ || main_->has_head() || !main_->endpoint()) return;
  const std::uint64_t length = request_.length - delivered_;
  if (!core().policies.may_hedge(lane().loop().now(), length, lane().in_flight(),
                                 lane().connections())) {
    return;
  }
  hedged_ = true;
  S3Counters::add(core().counters.hedges);
  hedge_.buffer = std::make_unique_for_overwrite<std::byte[]>(length);
  hedge_.from = delivered_;
  hedge_.length = length;
  hedge_.attempt = launch(attempt_request());
}

void GetOperation::copy_from_hedge() {
  if (!hedge_.leads || main_ || decided()) return;
  const std::uint64_t end = hedge_.from + hedge_.received;
  std::uint64_t at = 0;  // Where a segment begins, counted in bytes of the destination.
  for (const Segment& segment : request_.destination) {
    const std::uint64_t first = std::max(at, delivered_);
    const std::uint64_t last = std::min(at + segment.size(), end);
    if (first < last) {
      std::memcpy(segment.data() + (first - at), hedge_.buffer.get() + (first - hedge_.from),
                  last - first);
    }
    at += segment.size();
  }
  deliver(end);
  if (!hedge_.attempt && delivered_ == request_.length) settle(GetOutcome::kOk);
}

void GetOperation::give_budget_back() {
  core().policies.on_hedge_end(hedge_.length - hedge_.received);
  S3Counters::add(core().counters.hedged_bytes, hedge_.received);
}

void GetOperation::on_hedge_end(AttemptEnd end) {
  const std::shared_ptr<Attempt> ended = std::exchange(hedge_.attempt, nullptr);
  if (!end.error) hedge_.received = hedge_.length;
  give_budget_back();
  if (hedge_.leads) {
    if (end.error) pending_ = {ended, std::move(end)};
    if (main_) return;  // Still being closed: its end goes on from here.
    copy_from_hedge();
    if (!decided()) fail_attempt(*pending_.from, std::move(pending_.end));
    return;
  }
  // It did not help. If the first request has failed meanwhile, that failure counts.
  if (!main_ && pending_.from) fail_attempt(*pending_.from, std::move(pending_.end));
}

}  // namespace objectcache::store_s3
