#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "objectcache/types.h"
#include "s3/uri.h"
#include "store/s3/circuit_breaker.h"
#include "store/s3/hedge_policy.h"
#include "store/s3/rate_limiter.h"
#include "store/s3/retry_policy.h"

namespace objectcache::store_s3 {

/// Whether the hash of a body is part of its signature. Hashing costs CPU; without TLS it is all
/// that keeps a body from being changed on the way (where the server checks it).
enum class SignPayload : std::uint8_t { kAuto, kAlways, kNever };

/// Where the objects are and how to talk to the store; everything but who we are (credentials.h).
/// docs/url.md says what the parameters of a URL mean; s3_url.h turns them into this.
struct S3Options {
  std::string bucket;
  std::string prefix;  ///< Of every key; without slashes at the ends. May be empty.
  /// At least one. All serve the same bucket: requests are spread, dead ones are left out.
  std::vector<s3::Endpoint> endpoints;
  s3::AddressingStyle style = s3::AddressingStyle::kPath;
  std::string region = "us-east-1";
  bool region_is_explicit = false;  ///< False: an answer that names another region is believed.
  bool anonymous = false;           ///< Sends no signature.
  SignPayload sign_payload = SignPayload::kAuto;

  std::string ca_file;             ///< PEM; empty: what the system trusts.
  std::uint32_t connections = 16;  ///< Of one loop to one endpoint.
  Duration connect_timeout = std::chrono::seconds(3);
  Duration stall_timeout = std::chrono::seconds(10);    ///< No byte moves while some are due.
  Duration request_timeout = std::chrono::seconds(60);  ///< Of one attempt.
  std::uint64_t receive_buffer_bytes = 0;               ///< Of a socket; 0: the system's choice.
  double link_bytes_per_second = 0;                     ///< 0: unknown.

  RetryOptions retry;
  HedgeOptions hedge;
  BreakerOptions breaker;
  RateLimiterOptions rate;

  /// "s3://bucket/prefix", for messages.
  [[nodiscard]] std::string url() const {
    return "s3://" + bucket + (prefix.empty() ? std::string() : "/" + prefix);
  }
};

}  // namespace objectcache::store_s3
