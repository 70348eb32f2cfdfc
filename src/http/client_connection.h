#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "http/body_target.h"
#include "http/connection.h"
#include "http/reactor.h"
#include "http/request_head.h"
#include "http/response_parser.h"
#include "http/transport.h"

namespace objectcache::http {

/// One connection moves about this much before others get their turn.
inline constexpr std::size_t kTurnBytes = 1024 * 1024;
inline constexpr std::size_t kBuffersMax = 64;

/// What Connection::open() gives: the state machine of one connection. connection.cc opens, sends,
/// waits and ends; connection_receive.cc reads answers. Nobody else includes this.
///
/// Threads: the reactor's. Limits and lifetimes: connection.h.
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

}  // namespace objectcache::http
