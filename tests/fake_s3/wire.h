#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "s3/sigv4.h"

struct ssl_st;

namespace objectcache::fake_s3 {

/// One accepted connection, plain or TLS: blocking reads and writes that end when stop_fd becomes
/// readable or the peer goes away.
///
/// Threads: the connection's own; interrupt() any.
class Wire {
 public:
  /// Takes over `fd` (and `ssl`, null for plain). `stop_fd` stays the caller's.
  Wire(int fd, ssl_st* ssl, int stop_fd) : fd_(fd), ssl_(ssl), stop_fd_(stop_fd) {}
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// Bytes read; 0: the connection has ended, for whatever reason.
  [[nodiscard]] std::size_t read(std::span<std::byte> to);
  [[nodiscard]] bool write(std::string_view head, std::span<const std::byte> body);
  /// Waits that long. False: the peer has gone, or the server stops.
  [[nodiscard]] bool wait(std::chrono::nanoseconds time);
  /// Waits until the peer has gone or the server stops.
  void wait_for_end();
  /// Ends it with a RST, dropping what is not sent.
  void reset();
  /// Ends it as HTTP should, so that the peer still gets everything that was written.
  void close();
  /// Makes every read and write, running or to come, end.
  void interrupt();

 private:
  void close_descriptor();
  [[nodiscard]] bool write_some(std::span<const std::byte> bytes);

  std::mutex mutex_;  // keeps interrupt() off a descriptor that is being closed
  int fd_;            // written under mutex_, by the connection's own thread only
  ssl_st* ssl_;
  int stop_fd_;
};

/// A request as it was read. Views point into `head`.
struct WireRequest {
  std::string head;
  std::string_view method;
  std::string_view path;
  std::string_view query;
  std::vector<s3::HeaderView> headers;
  std::vector<std::byte> body;

  [[nodiscard]] std::string_view target() const;
  /// The value of the only header of that name; empty if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
};

/// Reads requests off a wire. Strict: HTTP/1.1, CRLF, Content-Length, no folding, no repeated
/// headers. Keeps what was read beyond a request for the next.
class RequestReader {
 public:
  struct Limits {
    std::size_t head_bytes_max = 32 * 1024;
    std::size_t headers_max = 64;
    std::size_t body_bytes_max = std::size_t{256} << 20;
  };
  RequestReader(Wire& wire, Limits limits) : wire_(wire), limits_(limits) {}

  enum class Outcome : std::uint8_t { kRequest, kEnd, kMalformed, kTooLarge };
  /// Reads one head. After kMalformed or kTooLarge the connection is good for one answer only, and
  /// problem() says why.
  [[nodiscard]] Outcome read_head(WireRequest& request);
  /// Reads the body that the head announces, or its first `bytes_max` bytes. Answers "100
  /// Continue" where it is asked for.
  [[nodiscard]] Outcome read_body(WireRequest& request, std::size_t bytes_max = SIZE_MAX);
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  [[nodiscard]] bool parse_head(WireRequest& request);
  [[nodiscard]] bool parse_request_line(WireRequest& request, std::string_view line);
  [[nodiscard]] bool parse_header(WireRequest& request, std::string_view line);
  bool refused(std::string why);

  Wire& wire_;
  const Limits limits_;
  std::string buffer_;  // read, but not yet part of a request
  std::string problem_;
};

}  // namespace objectcache::fake_s3
