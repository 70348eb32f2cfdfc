#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "objectcache/error.h"
#include "s3/uri.h"
#include "store/s3/connector.h"
#include "store/s3/credential_source.h"
#include "store/s3/put_condition.h"
#include "store/s3/s3_options.h"
#include "store/s3/s3_stats.h"
#include "store/s3/shared_policies.h"

namespace objectcache::store_s3 {

/// What the loops of one store share: its options, its policies, its counters, and what it has
/// learned about the server.
///
/// Threads: any.
class S3Core {
 public:
  struct Parts {
    S3Options options;
    std::vector<s3::BucketAddress> addresses;  ///< One for each of `options.endpoints`.
    std::shared_ptr<const WallClock> wall;
    std::shared_ptr<Connector> connector;
    std::shared_ptr<CredentialSource> credentials;
    std::uint64_t seed = 0;
  };
  explicit S3Core(Parts parts)
      : options(std::move(parts.options)),
        addresses(std::move(parts.addresses)),
        wall(std::move(parts.wall)),
        connector(std::move(parts.connector)),
        credentials(std::move(parts.credentials)),
        seed(parts.seed),
        policies(options),
        region_(options.region) {}

  /// The key as the server knows it.
  [[nodiscard]] std::string full_key(const std::string& key) const {
    return options.prefix.empty() ? key : options.prefix + "/" + key;
  }
  /// For messages.
  [[nodiscard]] std::string key_url(const std::string& key) const {
    return options.url() + "/" + key;
  }

  [[nodiscard]] std::string region() const {
    const std::lock_guard lock(mutex_);
    return region_;
  }
  /// Believes an answer that names the bucket's region; once, and only where the region was not
  /// chosen by the user. False: nothing was changed.
  [[nodiscard]] bool adopt_region(const std::string& region) {
    const std::lock_guard lock(mutex_);
    if (options.region_is_explicit || region.empty()) return false;
    if (region == region_) return region_adopted_;  // Another request was told the same.
    if (region_adopted_) return false;
    region_ = region;
    region_adopted_ = true;
    return true;
  }

  /// The server's clock, as far as it is known.
  [[nodiscard]] std::chrono::system_clock::time_point server_time() const {
    return wall->now() + std::chrono::seconds(clock_offset_s.load(std::memory_order_relaxed));
  }

  const S3Options options;
  const std::vector<s3::BucketAddress> addresses;
  const std::shared_ptr<const WallClock> wall;
  const std::shared_ptr<Connector> connector;
  const std::shared_ptr<CredentialSource> credentials;
  const std::uint64_t seed;

  S3Counters counters;
  SharedPolicies policies;
  PutCondition put_condition;
  std::atomic<std::int64_t> clock_offset_s{0};
  /// The server cannot delete many objects in one request.
  std::atomic<bool> no_delete_many{false};
  /// An answer has shown that the bucket exists.
  std::atomic<bool> bucket_seen{false};

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::string region_;
  bool region_adopted_ = false;
};

}  // namespace objectcache::store_s3
