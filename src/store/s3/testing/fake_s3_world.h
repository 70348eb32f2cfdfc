#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fake_event_loop.h"
#include "base/fake_wall_clock.h"
#include "base/random.h"
#include "http/client.h"
#include "s3/uri.h"
#include "store/s3/connector.h"
#include "store/s3/s3_store.h"

namespace objectcache::store_s3 {

/// How the fake server treats one request. The default is a good answer after a millisecond.
struct FakeTreatment {
  enum class Kind : std::uint8_t {
    kAnswer,        ///< By the rules of S3.
    kCanned,        ///< `status`, `headers`, `body` instead.
    kRefuse,        ///< No connection.
    kReset,         ///< The connection ends after `body_bytes` of the body, or before the head.
    kHang,          ///< Nothing more comes after `body_bytes` of the body, or before the head.
    kDoneNoAnswer,  ///< Carries it out, then the connection ends before the head.
  };
  Kind kind = Kind::kAnswer;
  Duration first_byte = std::chrono::milliseconds(1);
  Duration chunk_time = std::chrono::microseconds(100);
  std::uint64_t chunk_bytes = 16 * 1024;
  std::optional<std::uint64_t> body_bytes;  ///< kReset, kHang: empty: before the head.
  int status = 0;
  http::Headers headers;
  std::string body;
  /// Changes a good answer before it is sent.
  std::function<void(http::ResponseHead& head, std::string& body)> tamper;
};

/// A bucket "b" behind HTTP clients that need no sockets, and a judge of those who use them. Harder
/// than the real thing: until on_end() it scribbles over what a request has not delivered; it
/// reports requests whose segments overlap, and memory that is used after it was given back.
///
/// Threads: one.
class FakeS3World {
 public:
  struct Object {
    std::string bytes;
    std::string etag;
  };
  struct Seen {
    std::size_t endpoint = 0;
    http::Request request;  ///< Its body segments must not be looked at.
    std::string body;
    TimePoint at;
    [[nodiscard]] std::string header(std::string_view name) const {
      return std::string(http::find_header(request.headers, name).value_or(""));
    }
  };

  FakeS3World() : FakeS3World(plain_options(1)) {}
  explicit FakeS3World(S3Options options);
  ~FakeS3World();
  [[nodiscard]] static S3Options plain_options(std::size_t endpoints);

  void put(const std::string& key, std::string bytes);
  [[nodiscard]] store::ObjectStore& store() { return *store_; }
  [[nodiscard]] S3Store& s3() { return *store_; }

  // --- calls, run to their end on the virtual clock
  Result<store::GetAnswer> get(const std::string& key, std::uint64_t offset, std::string& into,
                               Duration patience = std::chrono::seconds(30));
  Result<store::PutAnswer> put_now(const std::string& key, const std::string& bytes,
                                   store::PutMode mode = store::PutMode::kIfAbsent,
                                   Duration patience = std::chrono::seconds(30));

  FakeEventLoop loop;
  std::shared_ptr<FakeWallClock> wall;
  std::map<std::string, Object> objects;
  std::vector<Seen> seen;  ///< Every request, in order.
  /// Asked for each request; `n` counts from 0.
  std::function<FakeTreatment(const Seen& request, std::size_t n)> treat;
  bool honours_if_none_match = true;
  bool honours_if_match = true;
  bool knows_delete_many = true;
  /// How long a cancelled request goes on touching its memory.
  Duration cancel_latency = std::chrono::microseconds(50);
  std::shared_ptr<CredentialSource> credentials;  ///< Replace before the first call.

  /// What the judge found wrong.
  std::vector<std::string> violations;
  std::size_t live = 0;  ///< Exchanges that have not ended.
  std::size_t live_max = 0;

 private:
  friend class FakeS3Client;
  friend class FakeExchange;
  class FakeConnector;

  void answer(const Seen& request, http::ResponseHead& head, std::string& body);
  void claim(const void* owner, const std::vector<Segment>& segments);
  void release(const void* owner) { claims_.erase(owner); }

  std::map<const void*, std::vector<Segment>> claims_;
  std::unique_ptr<S3Store> store_;
  std::uint64_t etags_ = 0;
};

/// An error document as S3 writes it.
[[nodiscard]] FakeTreatment canned(int status, const std::string& code, http::Headers headers = {},
                                   const std::string& extra = {});

}  // namespace objectcache::store_s3
