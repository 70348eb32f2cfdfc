#include "store/s3/metadata_fetch.h"

#include <utility>

#include <fmt/format.h>

#include "http/client.h"

namespace objectcache::store_s3 {
namespace {

// The services are on the same machine or next to it: who does not answer soon is not there.
constexpr Duration kConnectTimeout = std::chrono::seconds(1);
constexpr Duration kRequestTimeout = std::chrono::seconds(2);

/// One exchange whose body is collected. `done` is not called once whatever it captured is gone.
class Collector final : public http::ResponseSink {
 public:
  using Done = std::move_only_function<void(int status, Result<std::string> body)>;
  explicit Collector(Done done) : done_(std::move(done)) {}
  http::BodyPlan on_head(const http::ResponseHead& head) override {
    status_ = head.status;
    return {.kind = http::BodyPlan::Kind::kCollect,
            .segments = {},
            .bytes_max = s3::kMetadataBodyBytesMax};
  }
  void on_body(std::uint64_t) override {}
  void on_end(Result<std::string> result) override { done_(status_, std::move(result)); }

 private:
  Done done_;
  int status_ = 0;
};

/// One fetch: lives as long as FetchedCredentials holds it; its requests only know it weakly.
class Fetcher : public std::enable_shared_from_this<Fetcher> {
 public:
  Fetcher(EventLoop& loop, std::string source, FetchedCredentials::FetchCompletion done)
      : loop_(loop), source_(std::move(source)), done_(std::move(done)) {}
  virtual ~Fetcher() = default;

  void start(Connector& connector, const s3::Endpoint& endpoint) {
    auto client = connector.connect(
        loop_, endpoint,
        {.connections = 1, .connect_timeout = kConnectTimeout, .receive_buffer_bytes = 0});
    if (!client) {
      loop_.post([weak = weak_from_this(), error = std::move(client.error())] {
        if (const auto self = weak.lock()) self->finish(std::unexpected(error));
      });
      return;
    }
    client_ = std::move(*client);
    first();
  }

 protected:
  virtual void first() = 0;

  /// Goes on with `next(body)` after a 200; everything else ends the fetch.
  void ask(s3::MetadataRequest request, std::move_only_function<void(std::string)> next) {
    http::Request out;
    out.method = std::move(request.method);
    out.target = std::move(request.target);
    for (auto& [name, value] : request.headers) {
      out.headers.push_back({std::move(name), std::move(value)});
    }
    out.idempotent = true;
    client_->send(std::move(out),
                  {.deadline = loop_.now() + kRequestTimeout, .stall_timeout = kRequestTimeout},
                  std::make_shared<Collector>([weak = weak_from_this(), next = std::move(next)](
                                                  int status, Result<std::string> body) mutable {
                    const auto self = weak.lock();
                    if (!self) return;
                    if (!body) {
                      self->finish(std::unexpected(std::move(body.error())));
                    } else if (status != 200) {
                      self->finish(fail(ErrorCode::kPermissionDenied,
                                        fmt::format("it answered with status {}", status)));
                    } else {
                      next(std::move(*body));
                    }
                  }));
  }

  void finish(Result<s3::Credentials> result) {
    if (!result) {
      result.error().message = fmt::format(
          "no credentials from {}: {}; give keys by option, environment or file, or "
          "say anonymous=on",
          source_, result.error().message);
      result.error().action = "fetch credentials";
      if (result.error().code != ErrorCode::kUnavailable) {
        result.error().code = ErrorCode::kPermissionDenied;
      }
    }
    auto done = std::move(done_);
    done(std::move(result));
  }

 private:
  EventLoop& loop_;
  const std::string source_;
  FetchedCredentials::FetchCompletion done_;
  std::shared_ptr<http::Client> client_;
};

class ContainerFetcher final : public Fetcher {
 public:
  ContainerFetcher(EventLoop& loop, s3::MetadataRequest request,
                   FetchedCredentials::FetchCompletion done)
      : Fetcher(loop, "the container's metadata service", std::move(done)),
        request_(std::move(request)) {}

 private:
  void first() override {
    // `this` is alive whenever a next step is called: ask() sees to that.
    ask(std::move(request_),
        [this](const std::string& body) { finish(s3::parse_metadata_credentials(body)); });
  }
  s3::MetadataRequest request_;
};

class InstanceFetcher final : public Fetcher {
 public:
  InstanceFetcher(EventLoop& loop, FetchedCredentials::FetchCompletion done)
      : Fetcher(loop, "the machine's metadata service", std::move(done)) {}

 private:
  void first() override {
    ask(s3::instance_token_request(), [this](const std::string& body) {
      auto token = s3::parse_instance_token(body);
      if (!token) return finish(std::unexpected(std::move(token.error())));
      token_ = std::move(*token);
      second();
    });
  }
  void second() {
    ask(s3::instance_role_request(token_), [this](const std::string& body) {
      const auto role = s3::parse_instance_role(body);
      if (!role) return finish(std::unexpected(role.error()));
      ask(s3::instance_credentials_request(token_, *role),
          [this](const std::string& text) { finish(s3::parse_metadata_credentials(text)); });
    });
  }
  s3::Secret token_;
};

}  // namespace

Result<FetchedCredentials::Fetch> container_fetch(std::shared_ptr<Connector> connector,
                                                  const s3::ContainerSettings& settings) {
  auto request = s3::container_request(settings);
  if (!request) return std::unexpected(std::move(request.error()));
  return [connector = std::move(connector), request = std::move(*request)](
             EventLoop& loop, FetchedCredentials::FetchCompletion done) -> std::shared_ptr<void> {
    auto fetcher = std::make_shared<ContainerFetcher>(loop, request.request, std::move(done));
    fetcher->start(*connector, request.endpoint);
    return fetcher;
  };
}

FetchedCredentials::Fetch instance_fetch(std::shared_ptr<Connector> connector,
                                         s3::Endpoint endpoint) {
  return [connector = std::move(connector), endpoint = std::move(endpoint)](
             EventLoop& loop, FetchedCredentials::FetchCompletion done) -> std::shared_ptr<void> {
    auto fetcher = std::make_shared<InstanceFetcher>(loop, std::move(done));
    fetcher->start(*connector, endpoint);
    return fetcher;
  };
}

}  // namespace objectcache::store_s3
