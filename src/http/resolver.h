#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "objectcache/error.h"

namespace objectcache::http {

struct HostPort {
  std::string host;  ///< A name, or an address (IPv6 without brackets).
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string host;  ///< What it was resolved from.

  /// "127.0.0.1:7480", "[::1]:7480".
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] bool same_as(const SocketAddress& other) const;
};

/// Empty if `host` is a name.
[[nodiscard]] std::optional<SocketAddress> parse_address(const HostPort& host);

/// Asks the system for the addresses of names, in a thread of its own, because the system's call
/// waits as long as it likes. Destruction does not wait for that thread: it then ends by itself
/// and is not heard.
///
/// Threads: owner thread of the loop.   Limits: one question at a time.
class Resolver {
 public:
  /// All addresses of all names, without duplicates, in the order asked. An error only if none of
  /// the names has any.
  using Completion = std::move_only_function<void(Result<std::vector<SocketAddress>>)>;

  explicit Resolver(EventLoop& loop);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  [[nodiscard]] bool busy() const;
  /// Requires: not busy(). `done` is called later on the loop, not at all once this is destroyed.
  void resolve(std::vector<HostPort> hosts, Completion done);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace objectcache::http
