#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fake_s3/fault_plan.h"
#include "fake_s3/object_table.h"
#include "fake_s3/tls_files.h"
#include "objectcache/error.h"
#include "s3/credentials.h"

namespace objectcache::fake_s3 {

struct FakeS3Options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free one.
  std::vector<std::string> buckets{"test-bucket"};
  std::string region = "us-east-1";
  std::vector<s3::Credentials> credentials{
      {.access_key_id = "AKFAKES3TEST",
       .secret_access_key = s3::Secret("fake/secret+of/the/tests"),
       .session_token = {},
       .expires_at = {}}};
  std::optional<TlsFiles> tls;  ///< Set: speaks TLS only.
  EtagMode etags = EtagMode::kUnique;
  std::string base_path;                 ///< "/gateway": everything lies below it.
  std::string virtual_host_suffix;       ///< "store.local": also serves bucket.store.local.
  std::chrono::microseconds latency{0};  ///< From the request's last byte to the answer's first.
  std::chrono::seconds clock_offset{0};  ///< The server's clock minus the machine's.
  bool refuse_unknown_headers = true;
  std::uint64_t fault_seed = 1;
  std::size_t connections_max = 1024;  ///< More are closed at once.
  std::size_t records_max = 100'000;   ///< Requests kept for requests(); 0: none.
  std::size_t object_bytes_max = std::size_t{256} << 20;
};

/// One request as the server saw it, and what it answered.
struct RequestRecord {
  std::string method;
  std::string target;  ///< As on the wire.
  std::vector<std::pair<std::string, std::string>> headers;
  std::uint64_t body_bytes = 0;
  std::uint64_t connection = 0;  ///< 1 is the first that was accepted.
  std::chrono::steady_clock::time_point arrived;
  int status = 0;  ///< 0: none was sent, because of a fault.
  std::vector<FaultKind> faults;

  /// Empty: no such header.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
};

/// An S3 server for tests, in this process, that can misbehave on demand. It is stricter than S3:
/// it checks every signature, refuses query parameters and headers that it does not know, bodies
/// that differ from their hash, ETags without quotes, and several ranges; ETags are unique to each
/// publication. Objects live in memory.
///
/// A thread for each connection, blocking sockets, no lock held while sending. Threads: all members
/// any.
class FakeS3 {
 public:
  [[nodiscard]] static Result<std::unique_ptr<FakeS3>> start(FakeS3Options options);
  ~FakeS3();  ///< stop()
  FakeS3(const FakeS3&) = delete;
  FakeS3& operator=(const FakeS3&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// "http://127.0.0.1:PORT/base".
  [[nodiscard]] std::string endpoint() const;
  [[nodiscard]] const FakeS3Options& options() const;

  [[nodiscard]] FaultPlan& faults();
  [[nodiscard]] ObjectTable& objects();
  /// From the next request on only these are known.
  void set_credentials(std::vector<s3::Credentials> credentials);

  /// In the order in which they were read.
  [[nodiscard]] std::vector<RequestRecord> requests() const;
  void clear_requests();
  [[nodiscard]] std::uint64_t requests_total() const;
  [[nodiscard]] std::uint64_t connections_accepted() const;
  [[nodiscard]] std::size_t connections_open() const;

  /// Ends all connections that are open now, whatever they are doing.
  void drop_connections();
  /// Stops listening, ends all connections, waits for their threads. Harmless when repeated.
  void stop();

 private:
  class Impl;
  explicit FakeS3(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace objectcache::fake_s3
