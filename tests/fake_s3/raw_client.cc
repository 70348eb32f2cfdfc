#include "fake_s3/raw_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "digest/hex.h"
#include "digest/sha256.h"

namespace objectcache::fake_s3 {

std::string RawAnswer::header(std::string_view name) const {
  for (const auto& [n, value] : headers) {
    if (n == name) return value;
  }
  return "<none>";
}

RawClient::RawClient(const FakeS3& server, std::chrono::milliseconds patience)
    : credentials(server.options().credentials.at(0)),
      region(server.options().region),
      host(fmt::format("127.0.0.1:{}", server.port())),
      fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval timeout{.tv_sec = patience.count() / 1000,
                        .tv_usec = patience.count() % 1000 * 1000};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    last_error_ = errno;
  }
}

RawClient::~RawClient() { ::close(fd_); }

bool RawClient::send_raw(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool RawClient::send(std::string_view method, std::string_view path, std::string_view query,
                     const HeaderList& headers, std::string_view body,
                     const HeaderList& after_signing) {
  HeaderList all{{"host", host}};
  all.insert(all.end(), headers.begin(), headers.end());
  std::vector<s3::HeaderView> views;
  for (const auto& [name, value] : all) views.push_back({.name = name, .value = value});
  const std::string hash = digest::hex(digest::sha256(digest::bytes_of(body)));
  const auto signed_headers = s3::Signer(region).sign(
      {.method = method, .path = path, .query = query, .headers = views, .payload_hash = hash},
      credentials, std::chrono::system_clock::now() + clock_offset);
  all.emplace_back("x-amz-date", signed_headers.x_amz_date);
  all.emplace_back("x-amz-content-sha256", signed_headers.x_amz_content_sha256);
  all.emplace_back("authorization", signed_headers.authorization);
  if (!signed_headers.x_amz_security_token.empty()) {
    all.emplace_back("x-amz-security-token", signed_headers.x_amz_security_token);
  }
  if (method == "PUT" || method == "POST") {
    all.emplace_back("content-length", fmt::to_string(body.size()));
  }
  for (const auto& [name, value] : after_signing) {
    std::erase_if(all, [&](const auto& h) { return h.first == name; });
    all.emplace_back(name, value);
  }
  std::string text =
      fmt::format("{} {}{}{} HTTP/1.1\r\n", method, path, query.empty() ? "" : "?", query);
  for (const auto& [name, value] : all) text += fmt::format("{}: {}\r\n", name, value);
  text += "\r\n";
  text += body;
  return send_raw(text);
}

std::string RawClient::read_some() {
  std::array<char, 64 * 1024> piece;
  const ssize_t count = ::recv(fd_, piece.data(), piece.size(), 0);
  last_error_ = count < 0 ? errno : 0;
  return count <= 0 ? std::string() : std::string(piece.data(), static_cast<std::size_t>(count));
}

std::string RawClient::rest() {
  std::string out;
  out.swap(buffer_);
  for (std::string piece = read_some(); !piece.empty(); piece = read_some()) out += piece;
  return out;
}

std::optional<RawAnswer> RawClient::receive(bool has_body) {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    const std::string piece = read_some();
    if (piece.empty()) return std::nullopt;
    buffer_ += piece;
  }
  RawAnswer out;
  out.head = buffer_.substr(0, end + 2);
  buffer_.erase(0, end + 4);
  if (!out.head.starts_with("HTTP/1.1 ")) return std::nullopt;
  out.status = std::atoi(out.head.c_str() + 9);
  for (std::size_t at = out.head.find("\r\n") + 2; at < out.head.size();) {
    const std::size_t line_end = out.head.find("\r\n", at);
    const std::string line = out.head.substr(at, line_end - at);
    const std::size_t colon = line.find(": ");
    out.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    at = line_end + 2;
  }
  if (!has_body || out.status == 204 || out.status == 304) return out;
  const std::string length_text = out.header("Content-Length");
  if (length_text == "<none>") {
    out.body = rest();
    return out;
  }
  const std::size_t length = std::strtoull(length_text.c_str(), nullptr, 10);
  while (buffer_.size() < length) {
    const std::string piece = read_some();
    if (piece.empty()) break;
    buffer_ += piece;
  }
  out.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return out;
}

}  // namespace objectcache::fake_s3
