#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/random.h"
#include "http/client.h"
#include "objectcache/error.h"
#include "s3/credentials.h"
#include "s3/sigv4.h"
#include "store/s3/s3_core.h"

namespace objectcache::store_s3 {

/// One request as S3 knows it, before it is addressed and signed.
struct RequestSpec {
  Verb verb = Verb::kGet;
  std::string method;
  std::optional<std::string> key;  ///< With the store's prefix; empty: the bucket itself.
  std::string query;               ///< Encoded, without '?'.
  http::Headers headers;           ///< All are signed.
  std::vector<ConstSegment> body;
  std::string payload_hash{s3::kEmptyPayload};
  bool idempotent = false;  ///< As http::Request's.
};

/// One loop's part of a store: its connections to each endpoint, its signer, its random numbers.
///
/// Threads: owner thread of the loop.   Lifetimes: outlives the operations that run on it.
class Lane {
 public:
  /// kInvalidArgument and the like: no client can be made (a CA file that does not exist).
  [[nodiscard]] static Result<std::unique_ptr<Lane>> create(S3Core& core, EventLoop& loop,
                                                            std::uint64_t seed);

  [[nodiscard]] EventLoop& loop() { return loop_; }
  [[nodiscard]] S3Core& core() { return core_; }
  [[nodiscard]] Random& random() { return random_; }

  struct Route {
    std::size_t endpoint = 0;
    bool probe = false;  ///< The breaker's; goes back into on_attempt_end().
    http::Client* client = nullptr;
  };
  /// The endpoint for the next request: of those that the breakers admit the one with the fewest
  /// requests in flight, not `avoid` if there is another. Counts the request as in flight until
  /// leave(). Empty: none is admitted.
  [[nodiscard]] std::optional<Route> enter(std::optional<std::size_t> avoid);
  void leave(const Route& route);
  /// Requests in flight of this lane, and how many connections it has to the endpoints in use.
  [[nodiscard]] std::uint32_t in_flight() const { return in_flight_; }
  [[nodiscard]] std::uint32_t connections() const;

  /// The request as it goes on the wire. Null credentials: unsigned.
  [[nodiscard]] http::Request build(const RequestSpec& spec, std::size_t endpoint,
                                    const s3::Credentials* credentials);

 private:
  struct Link {
    std::shared_ptr<http::Client> client;
    std::uint32_t in_flight = 0;
  };
  Lane(S3Core& core, EventLoop& loop, std::uint64_t seed)
      : core_(core), loop_(loop), random_(seed), signer_(core.region()) {}

  S3Core& core_;
  EventLoop& loop_;
  Random random_;
  std::vector<Link> links_;  // as S3Options::endpoints
  std::uint32_t in_flight_ = 0;
  std::optional<s3::Signer> signer_;
  std::vector<s3::HeaderView> views_;  // scratch
};

}  // namespace objectcache::store_s3
