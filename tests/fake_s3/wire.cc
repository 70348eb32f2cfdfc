#include "fake_s3/wire.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

namespace objectcache::fake_s3 {
namespace {

constexpr bool is_token(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

// ---------------------------------------------------------------- Wire

Wire::~Wire() {
  if (ssl_ != nullptr) SSL_free(ssl_);
  close_descriptor();
}

void Wire::close_descriptor() {
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Wire::interrupt() {
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

std::size_t Wire::read(std::span<std::byte> to) {
  for (;;) {
    if (fd_ < 0) return 0;
    if (ssl_ != nullptr) {
      std::size_t count = 0;
      return SSL_read_ex(ssl_, to.data(), to.size(), &count) == 1 ? count : 0;
    }
    const ssize_t count = ::recv(fd_, to.data(), to.size(), 0);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0 || errno != EINTR) return 0;
  }
}

bool Wire::write_some(std::span<const std::byte> bytes) {
  if (ssl_ != nullptr) {
    std::size_t count = 0;
    return bytes.empty() || SSL_write_ex(ssl_, bytes.data(), bytes.size(), &count) == 1;
  }
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool Wire::write(std::string_view head, std::span<const std::byte> body) {
  if (fd_ < 0) return false;
  auto head_bytes = std::as_bytes(std::span(head.data(), head.size()));
  if (ssl_ != nullptr) {
    // One record for head and body, as far as it fits: fewer system calls and packets.
    constexpr std::size_t kRecordBytes = 16 * 1024;
    std::array<std::byte, kRecordBytes> record;
    if (head.size() < kRecordBytes) {
      const std::size_t room = std::min(kRecordBytes - head.size(), body.size());
      std::ranges::copy(head_bytes, record.begin());
      std::ranges::copy(body.first(room), record.begin() + static_cast<long>(head.size()));
      return write_some(std::span(record).first(head.size() + room)) &&
             write_some(body.subspan(room));
    }
    return write_some(head_bytes) && write_some(body);
  }
  // Both in one system call; whatever it did not take goes the plain way.
  const std::array<iovec, 2> pieces{
      iovec{.iov_base = const_cast<std::byte*>(head_bytes.data()), .iov_len = head_bytes.size()},
      iovec{.iov_base = const_cast<std::byte*>(body.data()), .iov_len = body.size()}};
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  ssize_t count = 0;
  do {
    count = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return false;
  const auto sent = static_cast<std::size_t>(count);
  if (sent < head_bytes.size()) return write_some(head_bytes.subspan(sent)) && write_some(body);
  return write_some(body.subspan(sent - head_bytes.size()));
}

bool Wire::wait(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) return true;
    if (fd_ < 0) return false;
    std::array<pollfd, 2> polled{pollfd{.fd = stop_fd_, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = fd_, .events = POLLRDHUP, .revents = 0}};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{.tv_sec = seconds.count(),
                           .tv_nsec = std::chrono::nanoseconds(left - seconds).count()};
    if (::ppoll(polled.data(), polled.size(), &timeout, nullptr) > 0) return false;
  }
}

void Wire::wait_for_end() {
  while (wait(std::chrono::hours(1))) {
  }
}

void Wire::reset() {
  if (fd_ < 0) return;
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close_descriptor();
}

void Wire::close() {
  if (fd_ < 0) return;
  if (ssl_ != nullptr) SSL_shutdown(ssl_);
  ::shutdown(fd_, SHUT_WR);
  // Bytes that nobody read would turn the end into a RST, which can overtake the answer.
  std::array<std::byte, 4096> dropped;
  std::size_t total = 0;
  pollfd polled{.fd = fd_, .events = POLLIN, .revents = 0};
  while (total < 1 << 20 && ::poll(&polled, 1, 20) > 0) {
    const ssize_t count = ::recv(fd_, dropped.data(), dropped.size(), MSG_DONTWAIT);
    if (count <= 0) break;
    total += static_cast<std::size_t>(count);
  }
  close_descriptor();
}

// ---------------------------------------------------------------- WireRequest

std::string_view WireRequest::target() const {
  return query.empty() ? path : std::string_view(path.data(), path.size() + 1 + query.size());
}

std::optional<std::string_view> WireRequest::header(std::string_view name) const {
  for (const auto& h : headers) {
    if (same_name(h.name, name)) return h.value;
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- RequestReader

bool RequestReader::refused(std::string why) {
  problem_ = std::move(why);
  return false;
}

RequestReader::Outcome RequestReader::read_head(WireRequest& request) {
  request = {};
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = buffer_.find("\r\n\r\n", searched);
    if (end != std::string::npos) {
      request.head = buffer_.substr(0, end + 2);
      buffer_.erase(0, end + 4);
      return parse_head(request) ? Outcome::kRequest : Outcome::kMalformed;
    }
    searched = buffer_.size() < 3 ? 0 : buffer_.size() - 3;
    if (buffer_.size() > limits_.head_bytes_max) {
      refused("the head of the request is too large");
      return Outcome::kTooLarge;
    }
    std::array<std::byte, 16 * 1024> piece;
    const std::size_t count = wire_.read(piece);
    if (count == 0) return Outcome::kEnd;
    buffer_.append(reinterpret_cast<const char*>(piece.data()), count);
  }
}

bool RequestReader::parse_head(WireRequest& request) {
  std::string_view rest = request.head;
  bool first = true;
  while (!rest.empty()) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != line.npos) {
      return refused("a line of the head has a control character");
    }
    if (!(first ? parse_request_line(request, line) : parse_header(request, line))) return false;
    first = false;
  }
  if (!request.header("host")) return refused("no Host header");
  if (request.header("transfer-encoding")) return refused("Transfer-Encoding is not accepted");
  return true;
}

bool RequestReader::parse_request_line(WireRequest& request, std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == line.npos || last == first) return refused("malformed request line");
  if (line.substr(last + 1) != "HTTP/1.1") return refused("only HTTP/1.1 is spoken here");
  request.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const bool clean = std::ranges::all_of(target, [](char c) { return c > ' ' && c < 127; });
  if (!target.starts_with('/') || !clean || target.find('#') != target.npos) {
    return refused("the target must be a path, encoded");
  }
  const std::size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != target.npos) request.query = target.substr(mark + 1);
  return true;
}

bool RequestReader::parse_header(WireRequest& request, std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos || colon == 0 || !std::ranges::all_of(line.substr(0, colon), is_token)) {
    return refused("malformed header line");
  }
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  const std::string_view name = line.substr(0, colon);
  if (request.header(name)) return refused("repeated header " + std::string(name));
  if (request.headers.size() == limits_.headers_max) return refused("too many headers");
  request.headers.push_back({.name = name, .value = value});
  return true;
}

RequestReader::Outcome RequestReader::read_body(WireRequest& request, std::size_t bytes_max) {
  std::size_t length = 0;
  if (const auto text = request.header("content-length")) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), length);
    if (text->empty() || error != std::errc{} || end != text->data() + text->size()) {
      refused("malformed Content-Length");
      return Outcome::kMalformed;
    }
  }
  if (length > limits_.body_bytes_max) {
    refused("the body is too large");
    return Outcome::kTooLarge;
  }
  if (const auto expect = request.header("expect")) {
    if (!same_name(*expect, "100-continue")) {
      refused("unknown Expect");
      return Outcome::kMalformed;
    }
    if (!wire_.write("HTTP/1.1 100 Continue\r\n\r\n", {})) return Outcome::kEnd;
  }
  length = std::min(length, bytes_max);
  request.body.resize(length);
  const std::size_t ready = std::min(length, buffer_.size());
  std::ranges::copy(std::as_bytes(std::span(buffer_.data(), ready)), request.body.begin());
  buffer_.erase(0, ready);
  for (std::size_t have = ready; have < length;) {
    const std::size_t count = wire_.read(std::span(request.body).subspan(have));
    if (count == 0) return Outcome::kEnd;
    have += count;
  }
  return Outcome::kRequest;
}

}  // namespace objectcache::fake_s3
