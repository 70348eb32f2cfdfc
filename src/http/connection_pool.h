#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "http/client.h"
#include "http/resolver.h"

namespace objectcache::http {

class Reactor;
struct PoolCore;

/// The real Client: keeps connections to one endpoint and gives each request one of them.
///
/// An endpoint is one or more hosts that serve the same. Their names are resolved in the background
/// and again from time to time; connections spread over all addresses; an address that fails is
/// left out for a while that grows, then tried again. Requests wait first in, first out for a
/// connection, at most until their deadline.
///
/// Errors beside those of the exchange (client.h): kUnavailable if no address can be connected to,
/// kLimitExceeded if the queue is full, kInvalidArgument for a request that cannot be sent or a
/// server whose certificate is not trusted.
///
/// Threads: owner thread of the reactor.   Limits: connections_max, queue_max.
/// Lifetimes: destroying it cancels every exchange; their on_end still come, later, on the loop.
class ConnectionPool final : public Client {
 public:
  struct Options {
    std::vector<HostPort> hosts;  ///< At least one.
    bool tls = false;
    std::string host_header;  ///< Empty: the first host, with its port unless that is usual.
    std::string tls_name;     ///< What certificates must be for. Empty: each host's own name.
    std::string ca_file;      ///< PEM of the only authorities to trust. Empty: the system's.
    bool insecure = false;    ///< TLS without checking who answers. For experiments only.
    std::uint32_t connections_max = 16;
    std::uint32_t queue_max = 4096;                      ///< Requests that wait for a connection.
    std::size_t receive_buffer_bytes = 0;                ///< Of a socket; 0: the system tunes it.
    Duration connect_timeout = std::chrono::seconds(3);  ///< With the TLS handshake.
    Duration idle_timeout = std::chrono::seconds(20);
    Duration resolve_timeout = std::chrono::seconds(5);
    Duration resolve_again = std::chrono::seconds(60);
    Duration avoid_min = std::chrono::milliseconds(500);  ///< A failed address, at first...
    Duration avoid_max = std::chrono::seconds(30);        ///< ...and after many failures.
  };
  /// All counts since the start, but for the `now_` ones.
  struct Stats {
    std::uint64_t connections_opened = 0;
    std::uint64_t connections_failed = 0;  ///< Could not be opened.
    std::uint64_t tls_sessions_reused = 0;
    std::uint64_t exchanges = 0;
    std::uint64_t exchanges_on_warm = 0;  ///< Needed no new connection.
    std::uint64_t resent = 0;             ///< A kept connection turned out dead.
    std::uint64_t queue_refusals = 0;
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_out = 0;
    Duration connect_time{0};           ///< Sum over connections_opened.
    std::uint32_t now_connections = 0;  ///< Open, or being opened.
    std::uint32_t now_idle = 0;
    std::uint32_t now_queued = 0;
    std::uint32_t now_addresses = 0;
    std::uint32_t now_avoided = 0;  ///< Of the addresses.
  };

  /// Fails with kInvalidArgument for options that cannot work.
  [[nodiscard]] static Result<std::unique_ptr<ConnectionPool>> create(Reactor& reactor,
                                                                      Options options);
  ~ConnectionPool() override;
  ConnectionPool(const ConnectionPool&) = delete;
  ConnectionPool& operator=(const ConnectionPool&) = delete;

  std::shared_ptr<Exchange> send(Request request, ExchangeOptions options,
                                 std::shared_ptr<ResponseSink> sink) override;
  /// Opens connections ahead of need, up to `connections` in all.
  void warm(std::uint32_t connections);
  [[nodiscard]] Stats stats() const;

 private:
  explicit ConnectionPool(std::shared_ptr<PoolCore> core);
  std::shared_ptr<PoolCore> core_;
};

}  // namespace objectcache::http
