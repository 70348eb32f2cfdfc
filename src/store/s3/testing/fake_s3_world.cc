#include "store/s3/testing/fake_s3_world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "s3/ranges.h"
#include "s3/xml.h"

namespace objectcache::store_s3 {
namespace {

using Kind = FakeTreatment::Kind;

std::size_t copy_into(const std::vector<Segment>& segments, std::uint64_t from,
                      std::string_view bytes) {
  std::uint64_t at = 0;
  std::size_t copied = 0;
  for (const Segment& segment : segments) {
    const std::uint64_t first = std::max(at, from);
    const std::uint64_t last = std::min<std::uint64_t>(at + segment.size(), from + bytes.size());
    if (first < last) {
      std::memcpy(segment.data() + (first - at), bytes.data() + (first - from), last - first);
      copied += last - first;
    }
    at += segment.size();
  }
  return copied;
}

std::uint64_t total(const std::vector<Segment>& segments) {
  std::uint64_t out = 0;
  for (const Segment& segment : segments) out += segment.size();
  return out;
}

}  // namespace

/// One request on the fake wire.
class FakeExchange final : public http::Exchange,
                           public std::enable_shared_from_this<FakeExchange> {
 public:
  FakeExchange(FakeS3World& world, FakeS3World::Seen seen, FakeTreatment treatment,
               http::ExchangeOptions options, std::shared_ptr<http::ResponseSink> sink)
      : world_(world),
        seen_(std::move(seen)),
        treatment_(std::move(treatment)),
        options_(options),
        granted_(options.grant_bytes),
        sink_(std::move(sink)) {}

  void start() {
    ++world_.live;
    world_.live_max = std::max(world_.live_max, world_.live);
    deadline_ = world_.loop.run_at(options_.deadline, [self = shared_from_this()] {
      self->deadline_ = TimerId::kNone;
      self->end(fail(ErrorCode::kDeadlineExceeded, "deadline"));
    });
    switch (treatment_.kind) {
      case Kind::kRefuse:
        later(treatment_.first_byte, [this] { end(fail(ErrorCode::kUnavailable, "refused")); });
        return;
      case Kind::kDoneNoAnswer: {
        http::ResponseHead head;
        std::string body;
        world_.answer(seen_, head, body);
        later(treatment_.first_byte, [this] { end(fail(ErrorCode::kUnavailable, "reset")); });
        return;
      }
      case Kind::kReset:
        if (!treatment_.body_bytes) {
          later(treatment_.first_byte, [this] { end(fail(ErrorCode::kUnavailable, "reset")); });
          return;
        }
        break;
      case Kind::kHang:
        if (!treatment_.body_bytes) {
          stall();
          return;
        }
        break;
      default:
        break;
    }
    later(treatment_.first_byte, [this] { head(); });
  }

  void cancel() override {
    if (ended_ || cancelled_) return;
    cancelled_ = true;
    stop_timers();
    scribble();
    later(world_.cancel_latency, [this] {
      scribble();
      end(fail(ErrorCode::kCancelled, "cancelled"));
    });
  }

  void grant(std::uint64_t bytes) override {
    granted_ += std::min(bytes, UINT64_MAX - granted_);
    if (held_ && !ended_ && !cancelled_) {
      held_ = false;
      later(Duration(0), [this] { body(); });
    }
  }

 private:
  void later(Duration span, std::function<void()> task) {
    timer_ = world_.loop.run_at(world_.loop.now() + span,
                                [self = shared_from_this(), task = std::move(task)] {
                                  self->timer_ = TimerId::kNone;
                                  task();
                                });
  }
  void stop_timers() {
    for (TimerId* timer : {&timer_, &deadline_}) {
      if (*timer != TimerId::kNone) world_.loop.cancel_timer(*timer);
      *timer = TimerId::kNone;
    }
  }
  void stall() {
    later(options_.stall_timeout, [this] { end(fail(ErrorCode::kUnavailable, "stalled")); });
  }
  /// Nothing promises that the rest of the segments is left alone before on_end().
  void scribble() {
    if (plan_.kind != http::BodyPlan::Kind::kSegments) return;
    const std::uint64_t length = total(plan_.segments);
    copy_into(plan_.segments, sent_, std::string(length - sent_, '#'));
  }

  void head() {
    http::ResponseHead head;
    if (treatment_.kind == Kind::kCanned) {
      head.status = treatment_.status;
      head.headers = treatment_.headers;
      body_ = treatment_.body;
      head.content_length = body_.size();
    } else {
      world_.answer(seen_, head, body_);
    }
    if (treatment_.tamper) treatment_.tamper(head, body_);
    announced_ = head.content_length;
    plan_ = sink_->on_head(head);
    if (ended_ || cancelled_) return;
    if (seen_.request.method == "HEAD") body_.clear();
    switch (plan_.kind) {
      case http::BodyPlan::Kind::kAbort:
        end(std::string());
        return;
      case http::BodyPlan::Kind::kSegments:
        world_.claim(this, plan_.segments);
        if (!announced_ || total(plan_.segments) != *announced_) {
          end(fail(ErrorCode::kInternal, "segments do not fit the body"));
          return;
        }
        break;
      default:
        break;
    }
    later(treatment_.chunk_time, [this] { body(); });
  }

  void body() {
    if (plan_.kind != http::BodyPlan::Kind::kSegments) {
      if (announced_ && body_.size() != *announced_ && seen_.request.method != "HEAD") {
        end(fail(ErrorCode::kCorrupt, "body differs from its announced length"));
      } else {
        end(plan_.kind == http::BodyPlan::Kind::kCollect ? body_ : std::string());
      }
      return;
    }
    const std::uint64_t length = *announced_;
    std::uint64_t limit = std::min<std::uint64_t>(length, body_.size());
    const bool breaks = treatment_.body_bytes && *treatment_.body_bytes < limit;
    if (breaks) limit = *treatment_.body_bytes;
    const std::uint64_t n =
        std::min({treatment_.chunk_bytes, limit - sent_, granted_ - std::min(granted_, sent_)});
    if (n > 0) {
      copy_into(plan_.segments, sent_, std::string_view(body_).substr(sent_, n));
      sent_ += n;
      sink_->on_body(sent_);
      if (ended_ || cancelled_) return;
    }
    if (sent_ == limit) {
      if (breaks && treatment_.kind == Kind::kHang) return stall();
      if (breaks) return fail_with(ErrorCode::kUnavailable, "reset");
      if (body_.size() < length) return fail_with(ErrorCode::kCorrupt, "short body");
      if (body_.size() > length) return fail_with(ErrorCode::kCorrupt, "over-long body");
      end(std::string());
    } else if (sent_ >= granted_) {
      held_ = true;
    } else {
      later(treatment_.chunk_time, [this] { body(); });
    }
  }
  void fail_with(ErrorCode code, const char* what) {
    scribble();
    end(fail(code, what));
  }

  void end(Result<std::string> result) {
    if (ended_) return;
    ended_ = true;
    stop_timers();
    if (!result) scribble();
    world_.release(this);
    --world_.live;
    const auto sink = std::move(sink_);
    sink->on_end(std::move(result));
  }

  FakeS3World& world_;
  FakeS3World::Seen seen_;
  FakeTreatment treatment_;
  http::ExchangeOptions options_;
  std::uint64_t granted_;
  std::shared_ptr<http::ResponseSink> sink_;
  http::BodyPlan plan_;
  std::string body_;
  std::optional<std::uint64_t> announced_;
  std::uint64_t sent_ = 0;
  TimerId timer_ = TimerId::kNone;
  TimerId deadline_ = TimerId::kNone;
  bool held_ = false;
  bool cancelled_ = false;
  bool ended_ = false;
};

class FakeS3Client final : public http::Client {
 public:
  FakeS3Client(FakeS3World& world, std::size_t endpoint) : world_(world), endpoint_(endpoint) {}

  std::shared_ptr<http::Exchange> send(http::Request request, http::ExchangeOptions options,
                                       std::shared_ptr<http::ResponseSink> sink) override {
    FakeS3World::Seen seen{
        .endpoint = endpoint_, .request = {}, .body = {}, .at = world_.loop.now()};
    for (const ConstSegment& segment : request.body) {
      seen.body.append(reinterpret_cast<const char*>(segment.data()), segment.size());
    }
    seen.request = std::move(request);
    seen.request.body.clear();
    FakeTreatment treatment =
        world_.treat ? world_.treat(seen, world_.seen.size()) : FakeTreatment{};
    world_.seen.push_back(seen);
    auto exchange = std::make_shared<FakeExchange>(world_, std::move(seen), std::move(treatment),
                                                   options, std::move(sink));
    exchange->start();
    return exchange;
  }

 private:
  FakeS3World& world_;
  std::size_t endpoint_;
};

class FakeS3World::FakeConnector final : public Connector {
 public:
  explicit FakeConnector(FakeS3World& world) : world_(world) {}
  Result<std::shared_ptr<http::Client>> connect(EventLoop&, const s3::Endpoint& endpoint,
                                                const Options&) override {
    const auto& endpoints = world_.s3().options().endpoints;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      if (endpoints[i].port == endpoint.port) return std::make_shared<FakeS3Client>(world_, i);
    }
    return fail(ErrorCode::kInvalidArgument, "no such endpoint");
  }

 private:
  FakeS3World& world_;
};

namespace {

/// Lets the world's owner replace the credentials after the store was made.
class WorldCredentials final : public CredentialSource {
 public:
  explicit WorldCredentials(FakeS3World& world) : world_(world) {}
  void get(EventLoop& loop, Completion done) override {
    world_.credentials->get(loop, std::move(done));
  }
  [[nodiscard]] bool renew(const CredentialsPtr& refused) override {
    return world_.credentials->renew(refused);
  }

 private:
  FakeS3World& world_;
};

}  // namespace

S3Options FakeS3World::plain_options(std::size_t endpoints) {
  S3Options out;
  out.bucket = "bkt";
  for (std::size_t i = 0; i < endpoints; ++i) {
    out.endpoints.push_back({.tls = false,
                             .host = "127.0.0.1",
                             .port = static_cast<std::uint16_t>(8001 + i),
                             .base_path = {}});
  }
  return out;
}

FakeS3World::FakeS3World(S3Options options)
    : wall(std::make_shared<FakeWallClock>(
          std::chrono::sys_days(std::chrono::year(2026) / 11 / 30))) {
  credentials = std::make_shared<FixedCredentials>(
      std::make_shared<const s3::Credentials>(s3::Credentials{.access_key_id = "AK",
                                                              .secret_access_key = s3::Secret("SK"),
                                                              .session_token = {},
                                                              .expires_at = {}}));
  auto store =
      S3Store::create(std::move(options), {.wall = wall,
                                           .connector = std::make_shared<FakeConnector>(*this),
                                           .credentials = std::make_shared<WorldCredentials>(*this),
                                           .seed = 1});
  if (!store) std::abort();
  store_ = std::move(*store);
}

FakeS3World::~FakeS3World() = default;

void FakeS3World::put(const std::string& key, std::string bytes) {
  objects[key] = {.bytes = std::move(bytes), .etag = fmt::format("\"{:032x}\"", ++etags_)};
}

void FakeS3World::claim(const void* owner, const std::vector<Segment>& segments) {
  for (const auto& [other, theirs] : claims_) {
    if (other == owner) continue;
    for (const Segment& a : segments) {
      for (const Segment& b : theirs) {
        if (a.data() < b.data() + b.size() && b.data() < a.data() + a.size()) {
          violations.push_back("two live requests share destination bytes");
        }
      }
    }
  }
  claims_[owner] = segments;
}

FakeTreatment canned(int status, const std::string& code, http::Headers headers,
                     const std::string& extra) {
  FakeTreatment out;
  out.kind = Kind::kCanned;
  out.status = status;
  out.headers = std::move(headers);
  if (!code.empty()) {
    out.body = "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>m</Message>" +
               extra + "</Error>";
  }
  return out;
}

// ---------------------------------------------------------------- the rules of S3

void FakeS3World::answer(const Seen& request, http::ResponseHead& head, std::string& body) {
  const std::string& target = request.request.target;
  const std::string path = target.substr(0, target.find('?'));
  const std::string query =
      target.find('?') == std::string::npos ? "" : target.substr(target.find('?') + 1);
  const std::string& method = request.request.method;
  const auto error = [&](int status, const std::string& code) {
    head.status = status;
    body = canned(status, code).body;
  };
  head.status = 200;
  if (!path.starts_with("/bkt")) {
    error(404, "NoSuchBucket");
  } else if (path == "/bkt" || path == "/bkt/") {
    if (method == "POST" && query == "delete=") {
      if (!knows_delete_many) {
        error(501, "NotImplemented");
      } else {
        const auto list = s3::parse_delete_request(request.body);
        for (const std::string& key : list->keys) objects.erase(key);
        body = s3::write_delete_result({});
      }
    } else if (method == "GET") {
      s3::ListResult result;
      const auto pairs = *s3::parse_query(query);
      std::string prefix;
      std::string after;
      std::size_t max = 1000;
      for (const auto& [name, value] : pairs) {
        if (name == "prefix") prefix = value;
        if (name == "start-after" || name == "continuation-token") after = value;
        if (name == "max-keys") max = std::stoul(value);
      }
      for (const auto& [key, object] : objects) {
        if (!key.starts_with(prefix) || key <= after) continue;
        if (result.objects.size() == max) {
          result.truncated = true;
          result.next_continuation_token = result.objects.back().key;
          break;
        }
        result.objects.push_back(
            {.key = key, .size_bytes = object.bytes.size(), .etag = object.etag});
      }
      body = s3::write_list_result(result, s3::KeyEncoding::kUrl);
    }
  } else {
    const std::string key = *s3::percent_decoded(path.substr(5));
    const auto it = objects.find(key);
    if (method == "PUT") {
      if (it != objects.end() && honours_if_none_match && request.header("if-none-match") == "*") {
        error(412, "PreconditionFailed");
      } else {
        put(key, request.body);
        head.headers.push_back({"ETag", objects[key].etag});
      }
    } else if (method == "DELETE") {
      objects.erase(key);
      head.status = 204;
    } else if (it == objects.end()) {
      error(404, "NoSuchKey");
    } else if (const std::string match = request.header("if-match");
               honours_if_match && !match.empty() && match != it->second.etag) {
      error(412, "PreconditionFailed");
    } else {
      const std::string& bytes = it->second.bytes;
      head.headers.push_back({"ETag", it->second.etag});
      const std::string range = request.header("range");
      const s3::RangeRequest parsed = s3::parse_range(range, bytes.size());
      if (method == "HEAD" || range.empty()) {
        body = bytes;
      } else if (parsed.kind != s3::RangeRequest::Kind::kPart) {
        error(416, "InvalidRange");
      } else {
        head.status = 206;
        body = bytes.substr(parsed.range.offset, parsed.range.length);
        head.headers.push_back(
            {"Content-Range", s3::format_content_range(parsed.range, bytes.size())});
      }
    }
  }
  head.content_length = body.size();
  head.headers.push_back({"Content-Length", std::to_string(body.size())});
  head.headers.push_back({"x-amz-request-id", "req-1"});
}

// ---------------------------------------------------------------- calls

Result<store::GetAnswer> FakeS3World::get(const std::string& key, std::uint64_t offset,
                                          std::string& into, Duration patience) {
  std::optional<Result<store::GetAnswer>> out;
  store::GetRequest request;
  request.key = {key};
  request.offset = offset;
  request.length = into.size();
  request.destination = {std::as_writable_bytes(std::span(into.data(), into.size()))};
  request.deadline = loop.now() + patience;
  const auto handle =
      store_->get(loop, std::move(request), [&](auto result) { out = std::move(result); });
  while (!out && loop.timers() > 0) loop.run_for(std::chrono::milliseconds(1));
  loop.run_ready();
  return out ? std::move(*out) : fail(ErrorCode::kInternal, "no completion");
}

Result<store::PutAnswer> FakeS3World::put_now(const std::string& key, const std::string& bytes,
                                              store::PutMode mode, Duration patience) {
  std::optional<Result<store::PutAnswer>> out;
  store::PutRequest request;
  request.key = {key};
  request.body = {std::as_bytes(std::span(bytes.data(), bytes.size()))};
  request.mode = mode;
  request.deadline = loop.now() + patience;
  const auto handle =
      store_->put(loop, std::move(request), [&](auto result) { out = std::move(result); });
  loop.run_ready();
  while (!out && loop.timers() > 0) loop.run_for(std::chrono::milliseconds(1));
  loop.run_ready();
  return out ? std::move(*out) : fail(ErrorCode::kInternal, "no completion");
}

}  // namespace objectcache::store_s3
