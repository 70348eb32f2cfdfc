#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/connection_pool.h"
#include "http/reactor.h"

namespace objectcache::http {

/// Runs `task` on the loop and gives back what it returned.
template <class F>
auto run_on(Reactor& reactor, F task) {
  std::packaged_task<decltype(task())()> packaged(std::move(task));
  auto future = packaged.get_future();
  reactor.post(std::move(packaged));
  return future.get();
}

/// Records all that a sink hears and checks the rules of the order. Answers on_head by `plan`.
class RecordingSink final : public ResponseSink {
 public:
  using Planner = std::function<BodyPlan(const ResponseHead&)>;
  explicit RecordingSink(Planner planner) : planner_(std::move(planner)) {}

  BodyPlan on_head(const ResponseHead& answer) override {
    EXPECT_FALSE(head) << "on_head came twice";
    EXPECT_FALSE(ended());
    head = answer;
    const auto plan = planner_(answer);
    if (in_head) in_head();
    return plan;
  }
  void on_body(std::uint64_t bytes) override {
    EXPECT_TRUE(head);
    EXPECT_FALSE(ended());
    EXPECT_GT(bytes, body_bytes) << "on_body must increase";
    body_bytes = bytes;
    ++body_calls;
    if (in_body) in_body(bytes);
  }
  void on_end(Result<std::string> value) override {
    if (in_end) in_end();
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(result_) << "on_end came twice";
    result_ = std::move(value);
    changed_.notify_all();
  }

  bool ended() {
    const std::lock_guard lock(mutex_);
    return result_.has_value();
  }
  /// Waits; fails the test after ten seconds.
  Result<std::string> result() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [&] { return result_.has_value(); })) {
      ADD_FAILURE() << "on_end never came";
      return fail(ErrorCode::kInternal, "on_end never came");
    }
    return *result_;
  }
  ErrorCode error() {
    const auto value = result();
    EXPECT_FALSE(value.has_value()) << "succeeded";
    return value ? ErrorCode::kInternal : value.error().code;
  }

  std::optional<ResponseHead> head;
  std::uint64_t body_bytes = 0;
  int body_calls = 0;
  std::function<void()> in_head;
  std::function<void(std::uint64_t)> in_body;
  std::function<void()> in_end;

 private:
  Planner planner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<std::string>> result_;
};

inline RecordingSink::Planner collect(std::uint64_t bytes_max = 64 * 1024) {
  return [bytes_max](const ResponseHead&) {
    return BodyPlan{.kind = BodyPlan::Kind::kCollect, .segments = {}, .bytes_max = bytes_max};
  };
}
inline RecordingSink::Planner plan_of(BodyPlan::Kind kind, std::uint64_t bytes_max = 64 * 1024) {
  return [=](const ResponseHead&) {
    return BodyPlan{.kind = kind, .segments = {}, .bytes_max = bytes_max};
  };
}
/// Into `out`, in pieces of `piece` bytes.
inline RecordingSink::Planner into(std::string& out, std::size_t piece = SIZE_MAX) {
  return [&out, piece](const ResponseHead&) {
    BodyPlan plan{.kind = BodyPlan::Kind::kSegments, .segments = {}, .bytes_max = 0};
    auto rest = std::as_writable_bytes(std::span(out));
    while (!rest.empty()) {
      const std::size_t n = std::min(piece, rest.size());
      plan.segments.push_back(rest.first(n));
      rest = rest.subspan(n);
    }
    return plan;
  };
}

inline Request get(std::string target = "/k") {
  return {
      .method = "GET", .target = std::move(target), .headers = {}, .body = {}, .idempotent = false};
}

/// A reactor and a pool on it, used from the test's thread.
class TestClient {
 public:
  explicit TestClient(ConnectionPool::Options options) {
    reactor_ = std::move(Reactor::start().value());
    auto made = ConnectionPool::create(*reactor_, std::move(options));
    EXPECT_TRUE(made) << made.error().to_string();
    pool_ = std::move(made.value());
  }
  explicit TestClient(std::uint16_t port, std::uint32_t connections_max = 1)
      : TestClient(options_for(port, connections_max)) {}
  ~TestClient() { destroy_pool(); }

  static ConnectionPool::Options options_for(std::uint16_t port,
                                             std::uint32_t connections_max = 1) {
    ConnectionPool::Options options;
    options.hosts = {{"127.0.0.1", port}};
    options.connections_max = connections_max;
    return options;
  }

  struct Call {
    std::shared_ptr<RecordingSink> sink;
    std::shared_ptr<Exchange> exchange;
  };
  Call send(Request request, RecordingSink::Planner planner,
            Duration within = std::chrono::seconds(8), Duration stall = std::chrono::seconds(8),
            std::uint64_t grant_bytes = UINT64_MAX,
            const std::function<void(RecordingSink&)>& prepare = {}) {
    Call call;
    call.sink = std::make_shared<RecordingSink>(std::move(planner));
    if (prepare) prepare(*call.sink);
    run_on(*reactor_, [&] {
      call.exchange = pool_->send(std::move(request),
                                  {.deadline = reactor_->now() + within,
                                   .stall_timeout = stall,
                                   .grant_bytes = grant_bytes},
                                  call.sink);
      EXPECT_FALSE(call.sink->ended()) << "the sink was called from inside send()";
    });
    return call;
  }
  void cancel(const Call& call) {
    run_on(*reactor_, [&] {
      const bool before = call.sink->ended();
      call.exchange->cancel();
      EXPECT_EQ(call.sink->ended(), before) << "the sink was called from inside cancel()";
      call.exchange->cancel();
    });
  }
  void grant(const Call& call, std::uint64_t bytes) {
    run_on(*reactor_, [&] { call.exchange->grant(bytes); });
  }
  ConnectionPool::Stats stats() {
    return run_on(*reactor_, [&] { return pool_->stats(); });
  }
  void destroy_pool() {
    run_on(*reactor_, [&] { pool_.reset(); });
  }
  ConnectionPool& pool() { return *pool_; }
  Reactor& reactor() { return *reactor_; }

 private:
  std::unique_ptr<Reactor> reactor_;
  std::unique_ptr<ConnectionPool> pool_;
};

inline std::string pattern(std::size_t bytes) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>((i * 131) ^ (i >> 8));
  return out;
}

inline std::string answer(std::string_view body, std::string_view status = "200 OK") {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

}  // namespace objectcache::http
