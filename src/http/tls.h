#pragma once

#include <memory>
#include <string>

#include "http/socket_io.h"
#include "objectcache/error.h"

namespace objectcache::http {

/// What the TLS connections to one endpoint share: whom to trust, and the sessions that make the
/// next handshake cheap. TLS 1.2 or newer.
///
/// Threads: owner thread of the loop that uses it.
class TlsContext {
 public:
  struct Options {
    std::string ca_file;    ///< PEM; the only authorities trusted. Empty: the system's.
    bool insecure = false;  ///< Trusts any certificate of any name. For experiments only.
  };
  /// kInvalidArgument: `ca_file` cannot be read or holds no certificate.
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> create_client(Options options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsStream;
  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// TLS over one connected, non-blocking socket, which it does not own. Decrypts straight into the
/// caller's memory. Never waits: it says what to wait for.
///
/// Threads: owner thread. Must not outlive the socket.
class TlsStream {
 public:
  /// `name`: the host name or address that the certificate must be for.
  [[nodiscard]] static Result<std::unique_ptr<TlsStream>> create_client(
      std::shared_ptr<TlsContext> context, int fd, std::string name);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  [[nodiscard]] IoResult handshake();
  /// After a failed handshake: true if the server's certificate was the reason.
  [[nodiscard]] bool certificate_refused() const;
  [[nodiscard]] bool session_reused() const;
  [[nodiscard]] IoResult read(Segment into);
  [[nodiscard]] IoResult write(ConstSegment from);
  [[nodiscard]] IoResult peek();
  /// Decrypted bytes that wait inside: the socket need not turn readable for them.
  [[nodiscard]] std::size_t pending() const;
  /// Tells the peer, as far as that works without waiting.
  void shutdown();

 private:
  struct Impl;
  explicit TlsStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace objectcache::http
