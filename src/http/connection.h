#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "http/client.h"
#include "http/resolver.h"

namespace objectcache::http {

class Reactor;
class TlsContext;
class Connection;

/// Hears when a connection may be used and when it is gone, on the loop, before the sink of the
/// exchange hears on_end. Never from inside a call of the owner.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  /// Connected, or done with an exchange and fit for the next: start() may be called at once.
  virtual void connection_ready(Connection& connection) = 0;
  /// Not usable any more; the last call for this connection. `why` is of interest where it was
  /// never ready.
  virtual void connection_closed(Connection& connection, const Error& why) = 0;
};

/// One client connection, TCP or TLS: one exchange at a time, kept alive between them.
///
/// The request's head and body go out by gathered writes. Only the head of the answer passes
/// through a buffer (ResponseParser); the body goes from the socket straight into the segments.
/// While an exchange lasts, one timer watches its deadline and whether bytes move.
///
/// Threads: owner thread of the reactor.   Lifetimes: `owner` must outlive the connection's last
/// call, or call abandon(). The connection keeps itself alive while something is pending.
class Connection {
 public:
  struct Options {
    std::string host_header;               ///< For requests that bring none.
    std::shared_ptr<TlsContext> tls;       ///< Null: plain TCP.
    std::string tls_name;                  ///< What the certificate must be for.
    std::size_t receive_buffer_bytes = 0;  ///< SO_RCVBUF; 0: the system tunes it.
  };
  /// What moved, over the connection's life; TLS counts what it carries.
  struct Counters {
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_out = 0;
    std::uint64_t exchanges = 0;
    bool tls_session_reused = false;
  };
  /// Why the last exchange failed, for who decides whether to send it again.
  enum class Failure : std::uint8_t { kNone, kPeer, kStall, kOther };

  /// Begins to connect; the owner hears how it ends, later.
  [[nodiscard]] static std::shared_ptr<Connection> open(Reactor& reactor,
                                                        const SocketAddress& address,
                                                        Options options, TimePoint deadline,
                                                        ConnectionOwner& owner);
  virtual ~Connection() = default;

  /// Requires: ready and not in an exchange; `request` and what its body names live to on_end.
  virtual void start(const Request& request, std::string head, const ExchangeOptions& options,
                     std::shared_ptr<ResponseSink> sink) = 0;
  /// Ends the exchange with kCancelled, later. A short rest of the answer is read and dropped to
  /// save the connection, else it is closed.
  virtual void cancel() = 0;
  virtual void grant(std::uint64_t bytes) = 0;
  /// Closes at once; the owner is not heard any more. A running exchange ends with kCancelled.
  virtual void abandon() = 0;
  /// True if the peer closed the idle connection, or sent what nobody asked for.
  [[nodiscard]] virtual bool spoiled() = 0;

  [[nodiscard]] virtual const SocketAddress& address() const = 0;
  [[nodiscard]] virtual const Counters& counters() const = 0;
  /// True once a byte of the current or last exchange's answer came.
  [[nodiscard]] virtual bool answer_begun() const = 0;
  [[nodiscard]] virtual Failure failure() const = 0;
};

}  // namespace objectcache::http
