#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "digest/sha256.h"
#include "s3/credentials.h"
#include "s3/http_date.h"

/// AWS Signature Version 4 with the rules of S3 (no path normalisation, no double encoding), in
/// the Authorization header. Signer and Checker share one canonical form, so they cannot disagree.
namespace objectcache::s3 {

/// What x-amz-content-sha256 says when the body is not part of the signature.
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
/// The hash of an empty body.
inline constexpr std::string_view kEmptyPayload =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

struct HeaderView {
  std::string_view name;  ///< Any case.
  std::string_view value;
};

/// The request as it stands on the wire. Nothing is owned.
struct RequestView {
  std::string_view method;
  std::string_view path;   ///< Percent-encoded, starts with '/'.
  std::string_view query;  ///< Percent-encoded, without '?'; in any order.
  std::span<const HeaderView> headers;
  std::string_view payload_hash;  ///< 64 hex digits, or kUnsignedPayload.
};

/// Where a signature is valid: "20130524/us-east-1/s3/aws4_request".
struct Scope {
  std::string_view day;
  std::string_view region;
  std::string_view service = "s3";
};

/// Appends the canonical request. `sorted` are the headers that are signed, in ascending order of
/// their lower-case names; those of one name stay in the order of the request. False: the path or
/// query has a '%' without two hex digits.
[[nodiscard]] bool append_canonical_request(std::string& out, const RequestView& request,
                                            std::span<const HeaderView> sorted);
/// Brings headers into the order that append_canonical_request() wants.
void sort_headers(std::vector<HeaderView>& headers);

/// The key of one day, region and service; derived from the secret by four HMACs, so the latest is
/// kept. Threads: one at a time.
class SigningKey {
 public:
  /// The hexadecimal signature of `canonical_request`.
  [[nodiscard]] std::string sign(const Credentials& credentials, const Scope& scope,
                                 std::string_view amz_date, std::string_view canonical_request);

 private:
  void derive(const Credentials& credentials, const Scope& scope);

  std::string scope_text_;  // "day/region/service/aws4_request" of key_
  Secret secret_;           // what key_ was derived from
  digest::Sha256Bytes key_{};
};

/// What the signer adds to a request: set each as a header, the last unless it is empty.
struct SignedHeaders {
  std::string x_amz_date;
  std::string x_amz_content_sha256;
  std::string authorization;
  std::string x_amz_security_token;
};

/// Signs requests to one region. Some microseconds each: two hashes and one HMAC.
///
/// Threads: one at a time; make one for each loop.
class Signer {
 public:
  explicit Signer(std::string region, std::string service = "s3")
      : region_(std::move(region)), service_(std::move(service)) {}

  /// Signs all of `request.headers`, which must hold "host" and none of those that come back.
  /// `request.path` and `request.query` must be well-formed, as uri.h makes them.
  [[nodiscard]] SignedHeaders sign(const RequestView& request, const Credentials& credentials,
                                   WallTime now);
  [[nodiscard]] const std::string& region() const { return region_; }

 private:
  const std::string region_;
  const std::string service_;
  SigningKey key_;
  std::vector<HeaderView> headers_;  // scratch, as is the next
  std::string canonical_;
};

/// The parts of "AWS4-HMAC-SHA256 Credential=..., SignedHeaders=..., Signature=...". Views into it.
struct Authorization {
  std::string_view access_key_id;
  Scope scope;
  std::vector<std::string_view> signed_headers;  ///< Lower case, ascending, no repetition.
  std::string_view signature;                    ///< 64 lower-case hex digits.
};
/// Empty: malformed. Bounded work whatever the text.
[[nodiscard]] std::optional<Authorization> parse_authorization(std::string_view value);

enum class CheckFailure : std::uint8_t {
  kMissing,         ///< No signature at all: an anonymous request.
  kMalformed,       ///< A header is not as it must be.
  kUnknownKey,      ///< No such access key id.
  kWrongScope,      ///< Signed for another region, service or day.
  kUnsignedHeader,  ///< A header that must be signed is not.
  kClockSkew,       ///< Signed too long ago, or in the future.
  kExpiredToken,    ///< Temporary credentials past their end.
  kBadToken,        ///< The session token is not that of the key.
  kBadSignature,    ///< All is well-formed, but the signature is not ours.
};
struct CheckProblem {
  CheckFailure failure;
  std::string message;  ///< For the answer; without secrets.
};
/// S3's own code for it, e.g. "SignatureDoesNotMatch".
[[nodiscard]] std::string_view s3_code_of(CheckFailure failure);

struct CheckedRequest {
  std::string access_key_id;
  /// What the body must hash to; empty for an unsigned payload. The caller compares.
  std::string payload_sha256_hex;
};

/// Checks the signatures of incoming requests. `request.payload_hash` is ignored; the
/// x-amz-content-sha256 header counts.
///
/// Threads: one at a time.
class Checker {
 public:
  struct Options {
    std::string region;  ///< Empty: any.
    std::string service = "s3";
    std::chrono::seconds skew_max = std::chrono::minutes(15);
  };
  /// Null: unknown. Must stay valid during check().
  using Lookup = std::function<const Credentials*(std::string_view access_key_id)>;

  Checker(Options options, Lookup lookup)
      : options_(std::move(options)), lookup_(std::move(lookup)) {}

  [[nodiscard]] std::expected<CheckedRequest, CheckProblem> check(const RequestView& request,
                                                                  WallTime now);

 private:
  [[nodiscard]] std::optional<CheckProblem> scope_problem(const Authorization& authorization,
                                                          std::string_view amz_date,
                                                          WallTime now) const;

  const Options options_;
  const Lookup lookup_;
  SigningKey key_;
  std::vector<HeaderView> headers_;  // scratch, as is the next
  std::string canonical_;
};

}  // namespace objectcache::s3
