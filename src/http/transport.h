#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "http/resolver.h"
#include "http/socket_io.h"

namespace objectcache::http {

class Reactor;
class TlsContext;

/// A client's end of one byte stream, TCP with or without TLS, on a reactor. It moves what can be
/// moved without waiting and tells when waiting makes sense; it knows nothing of HTTP.
///
/// Threads: owner thread of the reactor.
class Transport {
 public:
  /// Is told that a wait is over. Kept alive by the wait.
  class Waiter {
   public:
    virtual ~Waiter() = default;
    virtual void ready() = 0;
  };

  explicit Transport(Reactor& reactor);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Begins to connect: then wait until it can be written. Empty, or what went wrong at once.
  [[nodiscard]] std::string open(const SocketAddress& address, std::size_t receive_buffer_bytes);
  /// After that wait. kDone: connected.
  [[nodiscard]] IoResult finish_connect();
  /// After connecting. An error says that `name` cannot be used.
  [[nodiscard]] Result<void> start_tls(std::shared_ptr<TlsContext> context, std::string name);
  /// kDone: encrypted, and the peer is who it should be.
  [[nodiscard]] IoResult handshake();
  [[nodiscard]] bool certificate_refused() const;
  [[nodiscard]] bool tls_session_reused() const;

  /// Fills the buffers in order, as far as bytes are there.
  [[nodiscard]] IoResult read(std::span<iovec> buffers);
  [[nodiscard]] IoResult write(std::span<iovec> buffers);
  /// kDone if bytes are waiting; takes none.
  [[nodiscard]] IoResult peek();
  /// Bytes are waiting inside: the socket need not turn readable for them.
  [[nodiscard]] bool buffered() const;

  /// `what` is kWantRead or kWantWrite. A second wait for the same adds nothing.
  void wait(IoResult::Status what, std::shared_ptr<Waiter> waiter);

  /// Nothing is called after this but waits that were over already. `politely`: tells the peer.
  void close(bool politely);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace objectcache::http
