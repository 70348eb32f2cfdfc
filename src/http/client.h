#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::http {

/// Header names are compared without regard to case; order and repetition are kept.
struct Header {
  std::string name;
  std::string value;
};
using Headers = std::vector<Header>;
/// The first value of that name, or empty.
[[nodiscard]] std::optional<std::string_view> find_header(const Headers& headers,
                                                          std::string_view name);

struct Request {
  std::string method;  ///< "GET", "PUT"...
  std::string target;  ///< Origin form, already encoded: "/bucket/key?list-type=2".
  /// Host and Content-Length are added by the client unless given.
  Headers headers;
  /// The body, sent in order straight from this memory, which must stay unchanged to the end.
  std::vector<ConstSegment> body;
  /// Sending it twice does what sending it once does. True anyway for GET, HEAD and DELETE. Such a
  /// request is sent once more if a connection that was kept alive breaks before any byte of the
  /// answer.
  bool idempotent = false;
};

struct ResponseHead {
  int status = 0;
  Headers headers;
  std::optional<std::uint64_t> content_length;  ///< Empty: chunked, or ends with the connection.
};

/// Where the body of an answer goes; decided when its head is known.
struct BodyPlan {
  enum class Kind : std::uint8_t {
    kSegments,  ///< Straight into `segments`, whose sizes must add up to content_length.
    kCollect,   ///< Into a string of at most `bytes_max` bytes; more is an error.
    kDiscard,   ///< Read and dropped up to `bytes_max` bytes; beyond, the connection is closed.
    kAbort,     ///< The answer is unusable: close at once. The exchange ends with what came so far.
  };
  Kind kind = Kind::kDiscard;
  std::vector<Segment> segments;
  std::uint64_t bytes_max = 64 * 1024;
};

/// Hears of one exchange, on the loop: on_head at most once, on_body any number of times, on_end
/// exactly once and last. Must outlive on_end.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  virtual BodyPlan on_head(const ResponseHead& head) = 0;
  /// kSegments only: that many bytes of the body are in place. Strictly increasing.
  virtual void on_body(std::uint64_t bytes) = 0;
  /// `result` holds the collected body (kCollect), else it is empty. After this call nothing
  /// touches the segments or the request's body. An answer of any HTTP status is a success here; an
  /// error is the connection's: kUnavailable (refused, reset, closed early, stalled, TLS),
  /// kDeadlineExceeded, kCancelled, kLimitExceeded (queue full, oversized header or body), kCorrupt
  /// (not HTTP, or a body that is shorter or longer than announced), kInvalidArgument (a request
  /// that cannot be sent, a certificate that is not trusted: no use in trying again).
  virtual void on_end(Result<std::string> result) = 0;
};

struct ExchangeOptions {
  TimePoint deadline;
  /// No byte moves for that long while some are due: the attempt is given up (kUnavailable).
  Duration stall_timeout = std::chrono::seconds(10);
  /// Bytes of a kSegments body that may be read before grant(); the socket is then left unread, its
  /// stall timer stopped. Other bodies are small and read at once.
  std::uint64_t grant_bytes = UINT64_MAX;
};

/// One running request. Owner thread. Letting go of the handle does not cancel.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void cancel() = 0;  ///< on_end follows later, exactly once. Harmless when repeated.
  virtual void grant(std::uint64_t bytes) = 0;
};

/// Sends requests to one endpoint from one loop. The port between S3's rules and sockets: the real
/// one is http/connection_pool.h, tests use a scripted one.
///
/// Threads: owner thread of the loop.
class Client {
 public:
  virtual ~Client() = default;
  /// Never calls the sink from inside.
  virtual std::shared_ptr<Exchange> send(Request request, ExchangeOptions options,
                                         std::shared_ptr<ResponseSink> sink) = 0;
};

}  // namespace objectcache::http
