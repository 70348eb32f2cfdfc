#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench/bench_store.h"
#include "cli/bench/read_workload.h"

namespace objectcache::cli {

/// Objects of random bytes in one S3 store, and workloads that read random ranges of them: what
/// the clients of the store-read and cpu benches share.
///
/// Threads: one.
class ReadTarget {
 public:
  static constexpr std::uint64_t kObjectBytes = 16U << 20;

  /// kInvalidArgument: not an s3:// URL with an endpoint.
  [[nodiscard]] static Result<ReadTarget> create(const std::string& url,
                                                 const Environment& environment,
                                                 std::uint32_t objects);

  [[nodiscard]] std::string scheme() const { return base_.tls ? "https" : "http"; }
  [[nodiscard]] const std::string& url() const { return base_.url; }
  /// Must have these for reading.
  [[nodiscard]] const Environment& environment() const { return environment_; }

  [[nodiscard]] Result<void> put(BenchStore& store) const;
  /// Signs anew: a signature is good for a quarter of an hour.
  void sign();

  struct Sizes {
    std::uint32_t range_kib = 1024;
    std::uint32_t connections = 1;
    std::uint32_t mib = 1;  ///< To measure; the warm-up comes on top.
  };
  [[nodiscard]] ReadWorkload workload(const Sizes& sizes, std::uint64_t seed) const;

 private:
  ReadTarget() = default;
  [[nodiscard]] ConstSegment content(std::uint32_t object) const;

  Environment environment_;
  ReadWorkload base_;  // All but ranges and sizes.
  std::vector<std::byte> content_;
};

}  // namespace objectcache::cli
