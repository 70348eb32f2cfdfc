#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objectcache/error.h"

namespace objectcache::s3 {

/// Percent-encodes everything but A-Z a-z 0-9 - . _ ~ ("strict"), with upper-case digits, as
/// SigV4 wants it. For names and values of a query.
void append_query_encoded(std::string& out, std::string_view text);
/// The same, but '/' stays. For paths.
void append_path_encoded(std::string& out, std::string_view text);
[[nodiscard]] std::string query_encoded(std::string_view text);
[[nodiscard]] std::string path_encoded(std::string_view text);
/// Undoes percent-encoding; '+' stays '+'. Empty if a '%' is not followed by two hex digits.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

/// Name and value pairs that come out encoded and in the order of SigV4 ("a=1&b=&c=3").
class QueryBuilder {
 public:
  QueryBuilder& add(std::string_view name, std::string_view value = {});
  [[nodiscard]] std::string str() const;

 private:
  std::vector<std::pair<std::string, std::string>> encoded_;
};

/// Splits and decodes a query ("a=1&b"). Empty if it is malformed or has more than `pairs_max`
/// pairs. Order and repetition are kept.
[[nodiscard]] std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(
    std::string_view query, std::size_t pairs_max = 64);

/// Where a store listens: "https://host:port/base".
struct Endpoint {
  bool tls = false;
  std::string host;         ///< A name or an address; IPv6 without brackets.
  std::uint16_t port = 80;  ///< Always set.
  std::string base_path;    ///< Encoded; empty or starts with '/', never ends with one.

  /// As the Host header wants it: IPv6 in brackets, the port unless it is the scheme's own.
  [[nodiscard]] std::string authority() const;
  [[nodiscard]] std::string url() const;
};
/// Understands http and https only; refuses user names, queries and fragments.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view url);

enum class AddressingStyle : std::uint8_t {
  kPath,         ///< http://host/bucket/key: works with every server.
  kVirtualHost,  ///< http://bucket.host/key: what AWS prefers; needs DNS for each bucket.
};

/// Turns bucket and key into the Host header and path of a request.
class BucketAddress {
 public:
  /// Empty, or says why `bucket` is no S3 bucket name (3 to 63 of [a-z0-9.-]; also '_' and upper
  /// case, which old buckets and some servers have, in path style only).
  [[nodiscard]] static std::optional<std::string> bucket_problem(std::string_view bucket,
                                                                 AddressingStyle style);
  [[nodiscard]] static Result<BucketAddress> create(const Endpoint& endpoint,
                                                    std::string_view bucket, AddressingStyle style);
  /// Value of the Host header.
  [[nodiscard]] const std::string& host() const { return host_; }
  /// Encoded path of the bucket itself: starts with '/', for listings and batch deletes.
  [[nodiscard]] const std::string& bucket_path() const { return bucket_path_; }
  /// Encoded path of an object.
  [[nodiscard]] std::string object_path(std::string_view key) const;

 private:
  BucketAddress() = default;
  std::string host_;
  std::string bucket_path_;
  std::string object_prefix_;  // ends with '/'
};

}  // namespace objectcache::s3
