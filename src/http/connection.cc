#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "http/body_target.h"
#include "http/reactor.h"
#include "http/request_head.h"
#include "http/response_parser.h"
#include "http/transport.h"

namespace objectcache::http {

namespace {

/// One read brings at most this much, so that whoever checks the bytes finds them in the cache.
constexpr std::size_t kReadBytes = 256 * 1024;
/// One connection moves about this much before others get their turn.
constexpr std::size_t kTurnBytes = 1024 * 1024;
constexpr std::size_t kBuffersMax = 64;
/// A cancelled answer of which no more than this is left is read to its end: cheaper than a new
/// connection.
constexpr std::uint64_t kDrainBytes = 64 * 1024;
constexpr Duration kDrainTime = std::chrono::milliseconds(250);
constexpr std::size_t kChunkBytes = 16 * 1024;

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

class ClientConnection final : public Connection,
                               public Transport::Waiter,
                               public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(Reactor& reactor, SocketAddress address, Options options, TimePoint deadline,
                   ConnectionOwner& owner)
      : reactor_(reactor),
        owner_(&owner),
        options_(std::move(options)),
        address_(std::move(address)),
        transport_(reactor),
        deadline_(deadline) {}
  ~ClientConnection() override {
    if (timer_ != TimerId::kNone) reactor_.cancel_timer(timer_);
  }

  void connect();

  void start(const Request& request, std::string head, const ExchangeOptions& options,
             std::shared_ptr<ResponseSink> sink) override;
  void cancel() override;
  void grant(std::uint64_t bytes) override;
  void abandon() override;
  bool spoiled() override;
  const SocketAddress& address() const override { return address_; }
  const Counters& counters() const override { return counters_; }
  bool answer_begun() const override { return answer_begun_; }
  Failure failure() const override { return failure_; }

 private:
  enum class Phase : std::uint8_t { kConnecting, kHandshaking, kIdle, kHead, kBody, kClosed };
  /// Whether the read loop goes on, or a wait, a pause or an end has taken over.
  enum class Step : std::uint8_t { kAgain, kLeave };

  // Opening.
  void connected();
  void handshake();
  void opened();

  // Waiting.
  void wait_for(IoResult::Status what);
  void wait_read();
  void ready() override;
  void progress_later();
  void moved();
  void arm_timer(TimePoint when);
  void arm_exchange_timer();
  void timer_fired();

  // Sending.
  void send_some();

  // Receiving.
  void receive();
  Step receive_head();
  Step head_complete();
  Step receive_body();
  Step receive_direct(std::uint64_t limit);
  Step receive_encoded(std::uint64_t limit);
  Step take_encoded(std::span<const std::byte> raw);
  Step placed(std::uint64_t before);
  Step body_complete(bool surplus);
  Step ended_early(const IoResult& result);
  Step again_or_wait(const IoResult& result);
  IoResult read_some(std::span<iovec> buffers);

  // Ending.
  Step fail_exchange(Failure failure, Error error);
  void finish(Result<std::string> result, bool reusable);
  void close_socket();
  void close(const Error& why);
  bool in_exchange() const { return phase_ == Phase::kHead || phase_ == Phase::kBody; }
  Error unavailable(std::string what) const;

  Reactor& reactor_;
  ConnectionOwner* owner_;
  Options options_;
  SocketAddress address_;
  Transport transport_;
  Phase phase_ = Phase::kConnecting;
  Counters counters_;

  TimerId timer_ = TimerId::kNone;
  TimePoint timer_at_{};
  TimePoint deadline_;

  // One exchange. `serial_` tells code that called the sink whether that ended it.
  std::uint64_t serial_ = 0;
  std::shared_ptr<ResponseSink> sink_;  ///< Null while a cancelled answer is drained.
  RequestProgress request_;
  std::string send_problem_;  ///< Set: sending failed; an answer may still be there.
  Duration stall_timeout_{};
  TimePoint last_moved_{};
  std::uint64_t granted_ = 0;
  bool paused_ = false;
  bool answer_begun_ = false;
  Failure failure_ = Failure::kNone;
  ResponseParser parser_;
  BodyTarget target_;
  ChunkedDecoder decoder_;
  std::uint64_t turn_bytes_ = 0;
};

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

// ---------------------------------------------------------------- receiving

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

}  // namespace

std::shared_ptr<Connection> Connection::open(Reactor& reactor, const SocketAddress& address,
                                             Options options, TimePoint deadline,
                                             ConnectionOwner& owner) {
  auto made =
      std::make_shared<ClientConnection>(reactor, address, std::move(options), deadline, owner);
  made->connect();
  return made;
}

}  // namespace objectcache::http
