// Baseline of the store-read bench: plain blocking sockets, one thread a connection, kept alive. It
// signs nothing (the workload brings the headers), checks nothing, and knows just enough of HTTP to
// find where the body begins; the body goes straight into the buffer. http only.
//
//   socket_read WORKLOAD
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/bench/read_workload.h"

namespace {

using objectcache::cli::ReadWorkload;

int connect_to(const ReadWorkload& work) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(work.host.c_str(), std::to_string(work.port).c_str(), &hints, &found) != 0) {
    return -1;
  }
  const int fd = ::socket(found->ai_family, SOCK_STREAM, 0);
  const bool connected = fd >= 0 && ::connect(fd, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (!connected) return -1;
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

class SocketReader {
 public:
  explicit SocketReader(const ReadWorkload& work)
      : work_(work), fd_(connect_to(work)), buffer_(work.length) {}
  ~SocketReader() {
    if (fd_ >= 0) ::close(fd_);
  }
  SocketReader(const SocketReader&) = delete;
  SocketReader& operator=(const SocketReader&) = delete;

  bool read(const ReadWorkload::Range& range) { return fd_ >= 0 && send(range) && receive(); }

 private:
  bool send(const ReadWorkload::Range& range) {
    const ReadWorkload::Object& object = work_.objects[range.object];
    request_.clear();
    request_.append("GET ").append(object.path).append(" HTTP/1.1\r\nHost: ").append(work_.host);
    request_.append(":").append(std::to_string(work_.port)).append("\r\nx-amz-date: ");
    request_.append(object.amz_date).append("\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n");
    request_.append("Authorization: ").append(object.authorization).append("\r\nRange: bytes=");
    request_.append(std::to_string(range.offset)).append("-");
    request_.append(std::to_string(range.offset + work_.length - 1)).append("\r\n\r\n");
    return ::send(fd_, request_.data(), request_.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(request_.size());
  }

  bool receive() {
    std::array<char, 4096> head{};
    std::size_t have = 0;
    std::size_t body = std::string_view::npos;
    while (body == std::string_view::npos) {
      const ssize_t got = ::recv(fd_, head.data() + have, head.size() - have, 0);
      if (got <= 0) return false;
      have += static_cast<std::size_t>(got);
      body = std::string_view(head.data(), have).find("\r\n\r\n");
    }
    if (!std::string_view(head.data(), have).starts_with("HTTP/1.1 206")) return false;
    body += 4;
    std::size_t filled = have - body;
    if (filled > buffer_.size()) return false;
    std::memcpy(buffer_.data(), head.data() + body, filled);
    while (filled < buffer_.size()) {
      const ssize_t got = ::recv(fd_, buffer_.data() + filled, buffer_.size() - filled, 0);
      if (got <= 0) return false;
      filled += static_cast<std::size_t>(got);
    }
    return true;
  }

  const ReadWorkload& work_;
  int fd_;
  std::vector<char> buffer_;
  std::string request_;
};

bool read_all(std::vector<std::unique_ptr<SocketReader>>& readers, const ReadWorkload& work,
              std::size_t first, std::size_t last) {
  std::atomic<std::size_t> next{first};
  std::atomic<bool> good{true};
  const auto run = [&](SocketReader& reader) {
    for (std::size_t i = next++; i < last && good; i = next++) {
      if (!reader.read(work.ranges[i])) good = false;
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < readers.size(); ++i) {
    threads.emplace_back([&run, reader = readers[i].get()] { run(*reader); });
  }
  run(*readers[0]);
  for (std::thread& thread : threads) thread.join();
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto work = objectcache::cli::read_workload_file(argv[1]);
  if (!work) {
    std::fprintf(stderr, "socket_read: %s\n", work.error().to_string().c_str());
    return 2;
  }
  std::vector<std::unique_ptr<SocketReader>> readers;
  for (std::uint32_t i = 0; i < work->connections; ++i) {
    readers.push_back(std::make_unique<SocketReader>(*work));
  }
  const auto check = [](bool good) {
    if (!good) std::fputs("socket_read: a read failed\n", stderr);
    return good;
  };
  if (!check(read_all(readers, *work, 0, work->warm_up))) return 1;
  const objectcache::cli::ClientMeter meter;
  if (!check(read_all(readers, *work, work->warm_up, work->ranges.size()))) return 1;
  const auto result = meter.read(work->measured_bytes());
  std::fputs(objectcache::cli::format_client_result(result).c_str(), stdout);
  return 0;
}
