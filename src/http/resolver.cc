#include "http/resolver.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace objectcache::http {

std::string SocketAddress::to_string() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(in.sin_port));
  }
  sockaddr_in6 in{};
  std::memcpy(&in, &storage, sizeof in);
  ::inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
  return fmt::format("[{}]:{}", text, ntohs(in.sin6_port));
}

bool SocketAddress::same_as(const SocketAddress& other) const {
  return length == other.length && std::memcmp(&storage, &other.storage, length) == 0;
}

std::optional<SocketAddress> parse_address(const HostPort& host) {
  SocketAddress out;
  out.host = host.host;
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, host.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(host.port);
    std::memcpy(&out.storage, &v4, sizeof v4);
    out.length = sizeof v4;
    return out;
  }
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET6, host.host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(host.port);
    std::memcpy(&out.storage, &v6, sizeof v6);
    out.length = sizeof v6;
    return out;
  }
  return std::nullopt;
}

namespace {

// Appends the addresses of one name; returns what went wrong, or empty.
std::string look_up(const HostPort& host, std::vector<SocketAddress>& out) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  // Not AI_ADDRCONFIG: where only loopback is up it hides loopback's own names.
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = fmt::format("{}", host.port);
  const int code = ::getaddrinfo(host.host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) return fmt::format("cannot resolve host {}: {}", host.host, ::gai_strerror(code));
  for (const addrinfo* it = found; it != nullptr; it = it->ai_next) {
    if (it->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress address;
    std::memcpy(&address.storage, it->ai_addr, it->ai_addrlen);
    address.length = it->ai_addrlen;
    address.host = host.host;
    out.push_back(std::move(address));
  }
  ::freeaddrinfo(found);
  return {};
}

Result<std::vector<SocketAddress>> look_up_all(const std::vector<HostPort>& hosts) {
  std::vector<SocketAddress> all;
  std::string problem = "no host given";
  for (const HostPort& host : hosts) {
    if (auto address = parse_address(host)) {
      all.push_back(*std::move(address));
    } else if (auto bad = look_up(host, all); !bad.empty()) {
      problem = std::move(bad);
    }
  }
  std::vector<SocketAddress> out;
  for (SocketAddress& address : all) {
    const auto same = [&](const SocketAddress& seen) { return seen.same_as(address); };
    if (std::ranges::none_of(out, same)) out.push_back(std::move(address));
  }
  if (out.empty()) return fail(ErrorCode::kUnavailable, std::move(problem), "resolve");
  return out;
}

}  // namespace

struct Resolver::Shared {
  std::mutex mutex;
  EventLoop* loop = nullptr;  ///< Null once the resolver is gone.
  Completion done;            ///< Owner thread.
};

Resolver::Resolver(EventLoop& loop) : shared_(std::make_shared<Shared>()) { shared_->loop = &loop; }

Resolver::~Resolver() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->loop = nullptr;
  }
  shared_->done = nullptr;
}

bool Resolver::busy() const { return static_cast<bool>(shared_->done); }

void Resolver::resolve(std::vector<HostPort> hosts, Completion done) {
  assert(!busy());
  shared_->done = std::move(done);
  const auto deliver = [](const std::shared_ptr<Shared>& shared,
                          Result<std::vector<SocketAddress>> found) {
    const std::lock_guard lock(shared->mutex);
    if (shared->loop == nullptr) return;
    shared->loop->post([shared, found = std::move(found)]() mutable {
      if (!shared->done) return;
      Completion call = std::move(shared->done);
      shared->done = nullptr;
      call(std::move(found));
    });
  };
  const bool numeric = std::ranges::all_of(
      hosts, [](const HostPort& host) { return parse_address(host).has_value(); });
  if (numeric) return deliver(shared_, look_up_all(hosts));
  try {
    std::thread([shared = shared_, hosts, deliver] {
      deliver(shared, look_up_all(hosts));
    }).detach();
  } catch (const std::system_error& error) {
    deliver(shared_, fail(ErrorCode::kLimitExceeded, error.what(), "resolve"));
  }
}

}  // namespace objectcache::http
