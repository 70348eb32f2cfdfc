#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "objectcache/error.h"

namespace objectcache::cli {

/// One run of a client under test: which ranges to read, and everything that any of the clients
/// needs to know. Written as a text file of lines "name value...", so that the same file drives
/// ours, the C++ baselines (bench/baselines/) and those in Python.
struct ReadWorkload {
  struct Object {
    std::string key;   ///< Inside the store of `url`.
    std::string path;  ///< As on the wire: "/bucket/prefix/key", encoded.
    /// A signature that covers the object but not the range, for clients that do not sign.
    std::string amz_date;
    std::string authorization;
  };
  struct Range {
    std::uint32_t object = 0;  ///< Index into `objects`.
    std::uint64_t offset = 0;
    std::uint32_t crc32c = 0;  ///< What the bytes must come to.
  };
  std::string url;  ///< Of the store, for ours.
  std::string host;
  std::uint16_t port = 0;
  bool tls = false;
  std::string ca_file;
  std::string bucket;
  std::string key_prefix;  ///< Before each key, inside the bucket; empty or ends with '/'.
  std::string region;
  std::uint32_t connections = 1;
  std::uint64_t length = 0;   ///< Of each range.
  std::uint32_t warm_up = 0;  ///< That many of the first ranges are not measured.
  std::vector<Object> objects;
  std::vector<Range> ranges;

  [[nodiscard]] std::uint64_t measured_bytes() const { return (ranges.size() - warm_up) * length; }
};

[[nodiscard]] std::string format_workload(const ReadWorkload& workload);
/// kInvalidArgument names the line.
[[nodiscard]] Result<ReadWorkload> parse_workload(std::string_view text);
[[nodiscard]] Result<ReadWorkload> read_workload_file(const std::string& path);

/// What a client found; each prints it as one line of JSON, the last of its output.
struct ClientResult {
  std::uint64_t bytes = 0;
  double seconds = 0;
  double cpu_s = 0;  ///< User and system, all threads of the process.
};
[[nodiscard]] std::string format_client_result(const ClientResult& result);
[[nodiscard]] Result<ClientResult> parse_client_result(std::string_view output);

/// Measures from its construction on.
class ClientMeter {
 public:
  ClientMeter();
  [[nodiscard]] ClientResult read(std::uint64_t bytes) const;

 private:
  double wall_;
  double cpu_;
};
/// CPU seconds of this process so far.
[[nodiscard]] double process_cpu_seconds();

}  // namespace objectcache::cli
