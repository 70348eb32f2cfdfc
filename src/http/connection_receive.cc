#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "http/client_connection.h"

namespace objectcache::http {
namespace {

/// One read brings at most this much, so that whoever checks the bytes finds them in the cache.
constexpr std::size_t kReadBytes = 256 * 1024;
constexpr std::size_t kChunkBytes = 16 * 1024;

}  // namespace

void ClientConnection::receive() {
  const auto self = shared_from_this();
  const std::uint64_t serial = serial_;
  turn_bytes_ = 0;
  while (serial_ == serial && in_exchange()) {
    if (turn_bytes_ >= kTurnBytes) return progress_later();
    const Step step = phase_ == Phase::kHead ? receive_head() : receive_body();
    if (step == Step::kLeave) return;
  }
}

IoResult ClientConnection::read_some(std::span<iovec> buffers) {
  IoResult result = transport_.read(buffers);
  if (result.done()) {
    counters_.bytes_in += result.bytes;
    turn_bytes_ += result.bytes;
    moved();
  }
  return result;
}

ClientConnection::Step ClientConnection::ended_early(const IoResult& result) {
  std::string what = result.status == IoResult::Status::kEnd ? "the server closed the connection"
                                                             : "connection lost: " + result.problem;
  if (phase_ == Phase::kHead) {
    what += answer_begun_ ? " within the head of its answer" : " before it answered";
    if (!send_problem_.empty()) what += " (sending the request failed: " + send_problem_ + ")";
  } else if (const auto left = target_.remaining()) {
    what += fmt::format(" after {} of {} bytes of the body", target_.placed(),
                        target_.placed() + *left);
  } else {
    what += fmt::format(" after {} bytes of the body, before its end", target_.placed());
  }
  return fail_exchange(Failure::kPeer, unavailable(std::move(what)));
}

ClientConnection::Step ClientConnection::receive_head() {
  const Segment space = parser_.space();
  iovec buffer{space.data(), space.size()};
  const IoResult result = read_some(std::span(&buffer, 1));
  if (result.want_wait()) {
    wait_for(result.status);
    return Step::kLeave;
  }
  if (!result.done()) return ended_early(result);
  answer_begun_ = true;
  auto complete = parser_.commit(result.bytes);
  if (!complete) {
    Error error = std::move(complete).error();
    error.message = fmt::format("{}: {}", address_.to_string(), error.message);
    return fail_exchange(Failure::kOther, std::move(error));
  }
  if (*complete) return head_complete();
  return again_or_wait(result);
}

ClientConnection::Step ClientConnection::head_complete() {
  const ResponseHead& head = parser_.head();
  if (!request_.done() && head.status < 300) {
    return fail_exchange(Failure::kOther,
                         Error{.code = ErrorCode::kCorrupt,
                               .message = fmt::format("{}: the server answered {} before it had "
                                                      "the whole request",
                                                      address_.to_string(), head.status),
                               .action = {},
                               .key = {},
                               .s3_code = {},
                               .request_id = {},
                               .http_status = head.status});
  }
  const std::uint64_t serial = serial_;
  BodyPlan plan = sink_->on_head(head);
  if (serial_ != serial) return Step::kLeave;  // Cancelled from inside.
  phase_ = Phase::kBody;
  const auto verdict = target_.start(std::move(plan), parser_.framing(), head.content_length);
  if (!verdict) return fail_exchange(Failure::kOther, verdict.error());
  if (*verdict == BodyTarget::Verdict::kCloseHere) {
    finish(std::string(), false);
    return Step::kLeave;
  }
  return Step::kAgain;
}

ClientConnection::Step ClientConnection::receive_body() {
  const auto remaining = target_.remaining();
  if (remaining == 0) return body_complete(!parser_.rest().empty());
  std::uint64_t limit = UINT64_MAX;
  if (target_.fills_segments()) {
    limit = granted_;
    if (limit == 0) {
      paused_ = true;
      return Step::kLeave;
    }
  }
  if (!remaining) return receive_encoded(limit);
  if (const auto rest = parser_.rest(); !rest.empty()) {
    const std::uint64_t before = target_.placed();
    const auto part = rest.first(
        static_cast<std::size_t>(std::min<std::uint64_t>({rest.size(), limit, *remaining})));
    const auto verdict = target_.put(part);
    if (!verdict) return fail_exchange(Failure::kOther, verdict.error());
    parser_.consume(part.size());
    return placed(before);
  }
  return receive_direct(limit);
}

// Where there is no more to read, trying again would only cost a call.
ClientConnection::Step ClientConnection::again_or_wait(const IoResult& result) {
  if (!result.drained) return Step::kAgain;
  wait_read();
  return Step::kLeave;
}

ClientConnection::Step ClientConnection::receive_direct(std::uint64_t limit) {
  std::array<iovec, kBuffersMax + 1> buffers;
  const std::uint64_t before = target_.placed();
  const auto space = target_.next(std::span(buffers).first(kBuffersMax),
                                  std::min<std::uint64_t>(limit, kReadBytes));
  std::size_t count = space.buffers;
  // A byte behind the end of the body would be taken for the next answer: look for it here, where
  // it costs nothing.
  std::byte surplus{};
  const bool last = space.bytes == *target_.remaining();
  if (last) buffers[count++] = {&surplus, 1};
  const IoResult result = read_some(std::span(buffers).first(count));
  if (result.want_wait()) {
    wait_for(result.status);
    return Step::kLeave;
  }
  if (!result.done()) return ended_early(result);
  target_.advance(std::min(result.bytes, space.bytes));
  const Step step = placed(before);
  if (step == Step::kLeave) return step;
  if (last && result.bytes >= space.bytes) return body_complete(result.bytes > space.bytes);
  return again_or_wait(result);
}

// A chunked body, or one that ends with the connection: lists and error documents, so copied.
ClientConnection::Step ClientConnection::receive_encoded(std::uint64_t limit) {
  if (const auto rest = parser_.rest(); !rest.empty()) {
    const auto part =
        rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), limit)));
    parser_.consume(part.size());
    return take_encoded(part);
  }
  std::array<std::byte, kChunkBytes> raw;
  iovec buffer{raw.data(), static_cast<std::size_t>(std::min<std::uint64_t>(raw.size(), limit))};
  const IoResult result = read_some(std::span(&buffer, 1));
  if (result.want_wait()) {
    wait_for(result.status);
    return Step::kLeave;
  }
  if (result.status == IoResult::Status::kEnd && parser_.framing() == BodyFraming::kUntilClose) {
    return body_complete(false);
  }
  if (!result.done()) return ended_early(result);
  return take_encoded(std::span(raw).first(result.bytes));
}

ClientConnection::Step ClientConnection::take_encoded(std::span<const std::byte> raw) {
  const std::uint64_t before = target_.placed();
  while (!raw.empty()) {
    ChunkedDecoder::Step piece{.consumed = raw.size(), .data = raw, .done = false};
    if (parser_.framing() == BodyFraming::kChunked) {
      auto next = decoder_.next(raw);
      if (!next) return fail_exchange(Failure::kOther, std::move(next).error());
      piece = *next;
    }
    const auto verdict = target_.put(piece.data);
    if (!verdict) return fail_exchange(Failure::kOther, verdict.error());
    if (*verdict == BodyTarget::Verdict::kCloseHere) {
      finish(std::string(), false);
      return Step::kLeave;
    }
    raw = raw.subspan(piece.consumed);
    if (piece.done) {
      const Step step = placed(before);
      return step == Step::kAgain ? body_complete(!raw.empty() || !parser_.rest().empty()) : step;
    }
  }
  return placed(before);
}

// Tells the sink of what has come. kLeave: it ended the exchange from inside.
ClientConnection::Step ClientConnection::placed(std::uint64_t before) {
  const std::uint64_t bytes = target_.placed() - before;
  if (bytes == 0 || !sink_ || !target_.fills_segments()) return Step::kAgain;
  if (granted_ != UINT64_MAX) granted_ -= std::min(granted_, bytes);
  const std::uint64_t serial = serial_;
  sink_->on_body(target_.placed());
  return serial_ == serial ? Step::kAgain : Step::kLeave;
}

ClientConnection::Step ClientConnection::body_complete(bool surplus) {
  if (surplus || transport_.buffered()) {
    return fail_exchange(
        Failure::kOther,
        Error{.code = ErrorCode::kCorrupt,
              .message = fmt::format("{}: the server sent more than the {} bytes it announced",
                                     address_.to_string(), target_.placed()),
              .action = {},
              .key = {},
              .s3_code = {},
              .request_id = {},
              .http_status = 0});
  }
  const bool reusable = request_.done() && parser_.keep_alive();
  auto body = target_.finish();
  const bool good = body.has_value();
  if (!good) failure_ = Failure::kOther;
  finish(std::move(body), reusable && good);
  return Step::kLeave;
}

}  // namespace objectcache::http
