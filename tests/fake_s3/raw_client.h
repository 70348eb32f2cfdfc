#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fake_s3/fake_s3.h"
#include "s3/sigv4.h"

namespace objectcache::fake_s3 {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct RawAnswer {
  int status = 0;
  std::string head;
  HeaderList headers;
  std::string body;  ///< As it came; of chunked answers with the framing.

  [[nodiscard]] std::string header(std::string_view name) const;
};

/// A plain blocking socket that speaks just enough HTTP to test the server with. It trusts
/// nothing that the server's own code says.
class RawClient {
 public:
  /// `patience`: how long a read waits; short where a test expects nothing to come.
  explicit RawClient(const FakeS3& server,
                     std::chrono::milliseconds patience = std::chrono::seconds(20));
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// Signs and sends. Header fields may be added or, by the same name, replaced after signing.
  bool send(std::string_view method, std::string_view path, std::string_view query = {},
            const HeaderList& headers = {}, std::string_view body = {},
            const HeaderList& after_signing = {});
  bool send_raw(std::string_view text);
  /// One answer; empty: the connection ended before a whole head. The body ends with its
  /// Content-Length, the connection, or the client's patience.
  std::optional<RawAnswer> receive(bool has_body = true);
  std::optional<RawAnswer> exchange(std::string_view method, std::string_view path,
                                    std::string_view query = {}, const HeaderList& headers = {},
                                    std::string_view body = {}) {
    if (!send(method, path, query, headers, body)) return std::nullopt;
    return receive(method != "HEAD");
  }
  /// What is left to read until the connection ends or patience does.
  std::string rest();
  /// errno of the last read: 0 orderly end or data, ECONNRESET, EAGAIN after the timeout.
  [[nodiscard]] int last_error() const { return last_error_; }

  s3::Credentials credentials;
  std::string region;
  std::chrono::seconds clock_offset{0};
  std::string host;

 private:
  std::string read_some();

  int fd_;
  std::string buffer_;
  int last_error_ = 0;
};

}  // namespace objectcache::fake_s3
