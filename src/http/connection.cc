#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "http/client_connection.h"

namespace objectcache::http {
namespace {

/// A cancelled answer of which no more than this is left is read to its end: cheaper than a new
/// connection.
constexpr std::uint64_t kDrainBytes = 64 * 1024;
constexpr Duration kDrainTime = std::chrono::milliseconds(250);
std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

}  // namespace

// ---------------------------------------------------------------- opening

Error ClientConnection::unavailable(std::string what) const {
  return Error{.code = ErrorCode::kUnavailable,
               .message = fmt::format("{}: {}", address_.to_string(), what),
               .action = {},
               .key = {},
               .s3_code = {},
               .request_id = {},
               .http_status = 0};
}

void ClientConnection::connect() {
  std::string problem = transport_.open(address_, options_.receive_buffer_bytes);
  if (!problem.empty()) {
    reactor_.post([self = shared_from_this(), problem = std::move(problem)] {
      if (self->phase_ != Phase::kClosed) {
        self->close(self->unavailable("cannot connect: " + problem));
      }
    });
    return;
  }
  arm_timer(deadline_);
  wait_for(IoResult::Status::kWantWrite);
}

void ClientConnection::connected() {
  const IoResult result = transport_.finish_connect();
  if (!result.done()) return close(unavailable("cannot connect: " + result.problem));
  if (!options_.tls) return opened();
  const auto started = transport_.start_tls(options_.tls, options_.tls_name);
  if (!started) return close(started.error());
  phase_ = Phase::kHandshaking;
  handshake();
}

void ClientConnection::handshake() {
  const IoResult result = transport_.handshake();
  if (result.want_wait()) return wait_for(result.status);
  if (result.done()) {
    counters_.tls_session_reused = transport_.tls_session_reused();
    return opened();
  }
  Error error = unavailable(result.problem);
  // Nothing to gain from trying again: someone has to mend the configuration.
  if (transport_.certificate_refused()) error.code = ErrorCode::kInvalidArgument;
  close(error);
}

void ClientConnection::opened() {
  phase_ = Phase::kIdle;
  if (owner_ != nullptr) owner_->connection_ready(*this);
}

// ---------------------------------------------------------------- waiting

void ClientConnection::wait_for(IoResult::Status what) {
  transport_.wait(what, shared_from_this());
}

void ClientConnection::wait_read() { wait_for(IoResult::Status::kWantRead); }

void ClientConnection::ready() {
  switch (phase_) {
    case Phase::kConnecting:
      return connected();
    case Phase::kHandshaking:
      return handshake();
    case Phase::kHead:
    case Phase::kBody:
      if (phase_ == Phase::kHead && !request_.done()) send_some();
      return receive();
    case Phase::kIdle:  // A wait left over from an exchange; spoiled() looks before reuse.
    case Phase::kClosed:
      return;
  }
}

void ClientConnection::progress_later() {
  reactor_.post([self = shared_from_this(), serial = serial_] {
    if (self->serial_ == serial && self->in_exchange()) self->ready();
  });
}

void ClientConnection::moved() { last_moved_ = reactor_.now(); }

// Timers are set late and checked when they fire, not moved with every byte.
void ClientConnection::arm_timer(TimePoint when) {
  if (timer_ != TimerId::kNone) {
    if (timer_at_ <= when) return;
    reactor_.cancel_timer(timer_);
  }
  timer_at_ = when;
  timer_ = reactor_.run_at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->timer_fired();
  });
}

void ClientConnection::arm_exchange_timer() {
  const bool watched = !paused_ && stall_timeout_ < TimePoint::max() - last_moved_;
  arm_timer(watched ? std::min(deadline_, last_moved_ + stall_timeout_) : deadline_);
}

void ClientConnection::timer_fired() {
  timer_ = TimerId::kNone;
  const TimePoint now = reactor_.now();
  if (phase_ == Phase::kConnecting || phase_ == Phase::kHandshaking) {
    if (now < deadline_) return arm_timer(deadline_);
    return close(unavailable(phase_ == Phase::kConnecting ? "no answer to the attempt to connect"
                                                          : "no answer in the TLS handshake"));
  }
  if (!in_exchange()) return;
  if (now >= deadline_) {
    Error error = unavailable(phase_ == Phase::kHead ? "deadline passed before the answer began"
                                                     : "deadline passed before the answer's end");
    error.code = ErrorCode::kDeadlineExceeded;
    fail_exchange(Failure::kOther, std::move(error));
  } else if (!paused_ && now - last_moved_ >= stall_timeout_) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(stall_timeout_).count();
    fail_exchange(Failure::kStall, unavailable(fmt::format("stalled: no byte for {} ms", ms)));
  } else {
    arm_exchange_timer();
  }
}

// ---------------------------------------------------------------- sending

void ClientConnection::start(const Request& request, std::string head,
                             const ExchangeOptions& options, std::shared_ptr<ResponseSink> sink) {
  assert(phase_ == Phase::kIdle);
  ++serial_;
  ++counters_.exchanges;
  phase_ = Phase::kHead;
  sink_ = std::move(sink);
  request_.start(std::move(head), request.body);
  send_problem_.clear();
  deadline_ = options.deadline;
  stall_timeout_ = options.stall_timeout;
  granted_ = options.grant_bytes;
  paused_ = answer_begun_ = false;
  failure_ = Failure::kNone;
  parser_.start(request.method == "HEAD");
  decoder_ = ChunkedDecoder();
  moved();
  arm_exchange_timer();
  send_some();
  wait_read();
}

void ClientConnection::send_some() {
  std::size_t turn = 0;
  while (!request_.done() && send_problem_.empty()) {
    if (turn >= kTurnBytes) return progress_later();
    std::array<iovec, kBuffersMax> buffers;
    const std::size_t count = request_.next(buffers);
    const IoResult result = transport_.write(std::span(buffers).first(count));
    if (result.want_wait()) return wait_for(result.status);
    if (!result.done()) {
      // The server may have answered before it closed ("403", "412"): reading tells.
      send_problem_ =
          result.status == IoResult::Status::kEnd ? "connection closed" : result.problem;
      return;
    }
    turn += result.bytes;
    counters_.bytes_out += result.bytes;
    request_.advance(result.bytes);
    moved();
  }
}

// ---------------------------------------------------------------- ending

ClientConnection::Step ClientConnection::fail_exchange(Failure failure, Error error) {
  failure_ = failure;
  finish(std::unexpected(std::move(error)), false);
  return Step::kLeave;
}

void ClientConnection::finish(Result<std::string> result, bool reusable) {
  const auto self = shared_from_this();
  ++serial_;
  const auto sink = std::move(sink_);
  sink_ = nullptr;
  request_.forget();
  if (reusable) {
    phase_ = Phase::kIdle;
    if (owner_ != nullptr) owner_->connection_ready(*this);
  } else {
    close(result ? unavailable("closed after its answer") : result.error());
  }
  if (sink) sink->on_end(std::move(result));
}

void ClientConnection::close_socket() {
  transport_.close(phase_ == Phase::kIdle);
  phase_ = Phase::kClosed;
  if (timer_ != TimerId::kNone) reactor_.cancel_timer(timer_);
  timer_ = TimerId::kNone;
}

void ClientConnection::close(const Error& why) {
  close_socket();
  if (ConnectionOwner* const owner = std::exchange(owner_, nullptr)) {
    owner->connection_closed(*this, why);
  }
}

void ClientConnection::cancel() {
  if (!in_exchange() || !sink_) return;
  const bool drain = phase_ == Phase::kBody && request_.done() && parser_.keep_alive() &&
                     parser_.framing() == BodyFraming::kLength && target_.remaining() &&
                     *target_.remaining() <= kDrainBytes;
  ++serial_;
  request_.forget();
  failure_ = Failure::kOther;
  if (drain) {
    target_.detach();
    paused_ = false;
    moved();
    stall_timeout_ = kDrainTime;
    deadline_ = last_moved_ + kDrainTime;
    arm_exchange_timer();
    progress_later();
  } else {
    close_socket();
  }
  reactor_.post([self = shared_from_this(), sink = std::move(sink_), closed = !drain] {
    const Error error{.code = ErrorCode::kCancelled,
                      .message = "cancelled by the caller",
                      .action = {},
                      .key = {},
                      .s3_code = {},
                      .request_id = {},
                      .http_status = 0};
    if (closed) self->close(error);
    sink->on_end(std::unexpected(error));
  });
  sink_ = nullptr;
}

void ClientConnection::grant(std::uint64_t bytes) {
  if (!in_exchange() || !sink_) return;
  granted_ = saturating_add(granted_, bytes);
  if (!paused_ || granted_ == 0) return;
  paused_ = false;
  moved();
  arm_exchange_timer();
  progress_later();
}

void ClientConnection::abandon() {
  owner_ = nullptr;
  if (in_exchange() && sink_) {
    cancel();
  }
  if (phase_ != Phase::kClosed) close_socket();
}

bool ClientConnection::spoiled() {
  if (phase_ != Phase::kIdle) return true;
  return !transport_.peek().want_wait();
}

std::shared_ptr<Connection> Connection::open(Reactor& reactor, const SocketAddress& address,
                                             Options options, TimePoint deadline,
                                             ConnectionOwner& owner) {
  auto made =
      std::make_shared<ClientConnection>(reactor, address, std::move(options), deadline, owner);
  made->connect();
  return made;
}

}  // namespace objectcache::http
