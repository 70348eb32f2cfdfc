// Many requests, several connections and addresses, servers that come and go.
#include "http/connection_pool.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "http/http_test_client.h"
#include "http/scripted_server.h"

namespace objectcache::http {
namespace {

using namespace std::chrono_literals;
using Peer = ScriptedServer::Peer;

ScriptedServer::Script always(std::string bytes) {
  return [bytes = std::move(bytes)](Peer& peer) {
    while (!peer.read_request().empty()) peer.write(bytes);
  };
}

// A port where nobody listens, on all loopback addresses.
std::uint16_t closed_port() {
  ScriptedServer server([](Peer&) {});
  return server.port();
}

TEST(ConnectionPool, RefusesOptionsThatCannotWork) {
  auto reactor = std::move(Reactor::start().value());
  const auto code = [&](ConnectionPool::Options options) {
    const auto made = ConnectionPool::create(*reactor, std::move(options));
    return made ? ErrorCode::kInternal : made.error().code;
  };
  EXPECT_EQ(code({}), ErrorCode::kInvalidArgument);
  ConnectionPool::Options options;
  options.hosts = {{"h", 0}};
  EXPECT_EQ(code(options), ErrorCode::kInvalidArgument);
  options.hosts = {{"", 80}};
  EXPECT_EQ(code(options), ErrorCode::kInvalidArgument);
  options.hosts = {{"h", 80}};
  options.connections_max = 0;
  EXPECT_EQ(code(options), ErrorCode::kInvalidArgument);
  options.connections_max = 1;
  options.tls = true;
  options.ca_file = "/nonexistent/ca.pem";
  EXPECT_EQ(code(options), ErrorCode::kInvalidArgument);
}

TEST(ConnectionPool, ServesManyRequestsOverFewConnections) {
  ScriptedServer server(always(answer("hello")));
  TestClient client(server.port(), 3);
  std::vector<TestClient::Call> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(client.send(get(), collect()));
  for (const auto& call : calls) EXPECT_EQ(call.sink->result(), "hello");
  EXPECT_LE(server.connections(), 3);
  const auto stats = client.stats();
  EXPECT_EQ(stats.exchanges, 100U);
  EXPECT_EQ(stats.connections_opened, static_cast<std::uint64_t>(server.connections()));
  EXPECT_GE(stats.exchanges_on_warm, 97U);
  EXPECT_EQ(stats.now_queued, 0U);
  EXPECT_EQ(stats.now_idle, stats.now_connections);
  EXPECT_GT(stats.connect_time, Duration(0));
}

TEST(ConnectionPool, QueueIsFirstInFirstOutAndBounded) {
  std::mutex mutex;
  std::vector<std::string> order;
  std::promise<void> release;
  ScriptedServer server([&, go = release.get_future().share()](Peer& peer) {
    for (;;) {
      const std::string request = peer.read_request();
      if (request.empty()) return;
      {
        const std::lock_guard lock(mutex);
        order.push_back(request.substr(4, 2));
      }
      go.wait_for(5s);
      peer.write(answer(""));
    }
  });
  auto options = TestClient::options_for(server.port());
  options.queue_max = 3;
  TestClient client(options);
  std::vector<TestClient::Call> calls;
  calls.push_back(client.send(get("/0"), collect()));
  while (client.stats().now_queued > 0) std::this_thread::sleep_for(1ms);
  for (int i = 1; i <= 3; ++i)
    calls.push_back(client.send(get("/" + std::to_string(i)), collect()));
  const auto refused = client.send(get("/4"), collect());
  EXPECT_EQ(refused.sink->error(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(client.stats().queue_refusals, 1U);
  release.set_value();
  for (const auto& call : calls) EXPECT_EQ(call.sink->result(), "");
  const std::lock_guard lock(mutex);
  EXPECT_EQ(order, (std::vector<std::string>{"/0", "/1", "/2", "/3"}));
}

TEST(ConnectionPool, WaitingRequestsEndByDeadlineAndCancel) {
  ScriptedServer server([&](Peer& peer) { peer.wait_for_close(); });
  TestClient client(server.port());
  const auto running = client.send(get(), collect());
  const auto late = client.send(get(), collect(), 50ms);
  const auto dropped = client.send(get(), collect());
  client.cancel(dropped);
  EXPECT_EQ(dropped.sink->error(), ErrorCode::kCancelled);
  EXPECT_EQ(late.sink->error(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(client.stats().now_queued, 0U);
  client.cancel(running);
  EXPECT_EQ(running.sink->error(), ErrorCode::kCancelled);
}

TEST(ConnectionPool, RequestThatCannotBeSentIsRefused) {
  ScriptedServer server(always(answer("")));
  TestClient client(server.port());
  EXPECT_EQ(client.send(get("/a b"), collect()).sink->error(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(server.connections(), 0);
}

TEST(ConnectionPool, DestructionCancelsWhatRunsAndWaits) {
  ScriptedServer server([&](Peer& peer) { peer.wait_for_close(); });
  TestClient client(server.port());
  std::string out(10, 'x');
  const auto running = client.send(get(), into(out));
  const auto waiting = client.send(get(), into(out));
  std::this_thread::sleep_for(5ms);
  client.destroy_pool();
  EXPECT_EQ(running.sink->error(), ErrorCode::kCancelled);
  EXPECT_EQ(waiting.sink->error(), ErrorCode::kCancelled);
  run_on(client.reactor(), [&] {
    running.exchange->cancel();
    running.exchange->grant(1);
  });
}

TEST(ConnectionPool, OutlivedByNothingEvenIfTheLoopStopsFirst) {
  ScriptedServer server([&](Peer& peer) { peer.wait_for_close(); });
  auto reactor = std::move(Reactor::start().value());
  auto pool =
      std::move(ConnectionPool::create(*reactor, TestClient::options_for(server.port())).value());
  auto sink = std::make_shared<RecordingSink>(collect());
  run_on(*reactor,
         [&] { pool->send(get(), {.deadline = reactor->now() + 8s, .stall_timeout = 8s}, sink); });
  reactor->stop();
  pool.reset();
  reactor.reset();
  EXPECT_FALSE(sink->ended()) << "documented: a stopped loop tells nobody";
}

// ---------------------------------------------------------------- connections that die

TEST(ConnectionPool, ResendsOnceOverAFreshConnection) {
  // The first connection answers once and closes when the second request has come.
  std::atomic<int> requests = 0;
  ScriptedServer server([&](Peer& peer) {
    while (!peer.read_request().empty()) {
      ++requests;
      if (requests == 2) return peer.reset();
      peer.write(answer("hello"));
    }
  });
  TestClient client(server.port());
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
  EXPECT_EQ(server.connections(), 2);
  EXPECT_EQ(client.stats().resent, 1U);
  EXPECT_EQ(requests, 3);
}

TEST(ConnectionPool, DoesNotResendWhatMayHaveHadAnEffect) {
  std::atomic<int> requests = 0;
  ScriptedServer server([&](Peer& peer) {
    while (!peer.read_request().empty()) {
      if (++requests % 2 == 0) return peer.reset();
      peer.write(answer("hello"));
    }
  });
  TestClient client(server.port());
  Request post = get();
  post.method = "POST";
  EXPECT_EQ(client.send(post, collect()).sink->result(), "hello");
  EXPECT_EQ(client.send(post, collect()).sink->error(), ErrorCode::kUnavailable);
  post.idempotent = true;
  EXPECT_EQ(client.send(post, collect()).sink->result(), "hello");
  EXPECT_EQ(client.send(post, collect()).sink->result(), "hello") << "sent twice";
  EXPECT_EQ(requests, 5);
}

TEST(ConnectionPool, DoesNotResendForever) {
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    if (peer.number == 0) {
      peer.write(answer("hello"));
      peer.read_request();
    }
    peer.reset();
  });
  TestClient client(server.port());
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
  EXPECT_EQ(client.send(get(), collect()).sink->error(), ErrorCode::kUnavailable);
  EXPECT_EQ(server.connections(), 2);
}

TEST(ConnectionPool, NoticesIdleConnectionsThatWereClosed) {
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    peer.write(answer("hello"));
  });
  TestClient client(server.port());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
    std::this_thread::sleep_for(3ms);
  }
  EXPECT_EQ(client.stats().resent, 0U);
}

TEST(ConnectionPool, IdleConnectionsAreClosedAfterAWhile) {
  ScriptedServer server(always(answer("hello")));
  auto options = TestClient::options_for(server.port());
  options.idle_timeout = 30ms;
  TestClient client(options);
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
  EXPECT_EQ(client.stats().now_idle, 1U);
  for (int i = 0; i < 500 && client.stats().now_connections > 0; ++i)
    std::this_thread::sleep_for(2ms);
  EXPECT_EQ(client.stats().now_connections, 0U);
  EXPECT_EQ(client.stats().now_idle, 0U);
}

TEST(ConnectionPool, WarmOpensAhead) {
  ScriptedServer server(always(answer("hello")));
  TestClient client(server.port(), 4);
  run_on(client.reactor(), [&] { client.pool().warm(3); });
  for (int i = 0; i < 1000 && client.stats().now_idle < 3; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(client.stats().now_idle, 3U);
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
  EXPECT_EQ(client.stats().connections_opened, 3U);
  EXPECT_EQ(client.stats().exchanges_on_warm, 1U);
}

// A server that does something wrong now and then, callers that cancel now and then: each exchange
// ends exactly once, and a success is the right bytes.
TEST(ConnectionPool, NoWrongByteAmongFaultsAndCancels) {
  const std::string body = pattern(200'000);
  std::atomic<unsigned> turn = 0;
  ScriptedServer server([&](Peer& peer) {
    for (;;) {
      const std::string request = peer.read_request();
      if (request.empty()) return;
      const std::size_t offset = std::stoul(request.substr(5)) % 1000;
      const std::string part = body.substr(offset, 100'000);
      switch (turn++ % 11) {
        case 3:
          return peer.reset();
        case 5:
          peer.write(answer(part).substr(0, 50'000));
          return;
        case 7:
          peer.write(answer(part + "surplus").replace(33, 6, "100000"));
          break;
        case 9:
          peer.write(answer(part).substr(0, 60'000));
          peer.wait_for_close();
          return;
        default:
          peer.write(answer(part));
      }
    }
  });
  TestClient client(server.port(), 4);
  int good = 0;
  int bad = 0;
  for (std::size_t round = 0; round < 25; ++round) {
    std::vector<std::string> out(8, std::string(100'000, 'x'));
    std::vector<TestClient::Call> calls;
    for (std::size_t i = 0; i < out.size(); ++i) {
      calls.push_back(client.send(get("/" + std::to_string(round * 8 + i)), into(out[i], 9'999), 8s,
                                  50ms, i % 3 == 0 ? 10'000 : UINT64_MAX));
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (i % 3 == 0) client.grant(calls[i], 90'000);
      if ((round + i) % 5 == 0) client.cancel(calls[i]);
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto result = calls[i].sink->result();
      if (result) {
        ++good;
        EXPECT_TRUE(out[i] == body.substr((round * 8 + i) % 1000, 100'000));
      } else {
        ++bad;
        EXPECT_NE(result.error().code, ErrorCode::kDeadlineExceeded)
            << round << "." << i << ": " << result.error().message;
      }
    }
  }
  EXPECT_GT(good, 60);
  EXPECT_GT(bad, 20);
}

// ---------------------------------------------------------------- addresses

TEST(ConnectionPool, RefusedConnectionIsAnErrorAtOnce) {
  auto options = TestClient::options_for(closed_port(), 4);
  TestClient client(options);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<TestClient::Call> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(client.send(get(), collect()));
  for (const auto& call : calls) {
    const auto result = call.sink->result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(result.error().message.find("refused"), std::string::npos) << result.error().message;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_EQ(client.stats().now_avoided, 1U);
}

TEST(ConnectionPool, ComesBackWithTheServer) {
  const std::uint16_t port = closed_port();
  TestClient client(port);
  EXPECT_EQ(client.send(get(), collect()).sink->error(), ErrorCode::kUnavailable);
  ScriptedServer server(always(answer("hello")),
                        {.address = "127.0.0.1", .port = port, .certificate_file = {}});
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello")
      << "the only address is tried although it failed";
  EXPECT_EQ(client.stats().now_avoided, 0U);
}

TEST(ConnectionPool, LeavesADeadAddressOut) {
  ScriptedServer server(always(answer("hello")));
  auto options = TestClient::options_for(server.port(), 8);
  options.hosts = {{"127.0.0.2", server.port()}, {"127.0.0.1", server.port()}};
  TestClient client(options);
  std::vector<TestClient::Call> calls;
  for (int i = 0; i < 40; ++i) calls.push_back(client.send(get(), collect()));
  for (const auto& call : calls) EXPECT_EQ(call.sink->result(), "hello");
  const auto stats = client.stats();
  EXPECT_GE(stats.connections_failed, 1U);
  EXPECT_EQ(stats.now_avoided, 1U);
  EXPECT_EQ(stats.now_addresses, 2U);
}

TEST(ConnectionPool, SpreadsOverAddressesAndProbesTheDeadOneAgain) {
  ScriptedServer first([&](Peer& peer) {
    while (!peer.read_request().empty()) {
      std::this_thread::sleep_for(5ms);
      peer.write(answer("hello"));
    }
  });
  auto options = TestClient::options_for(first.port(), 4);
  options.hosts = {{"127.0.0.1", first.port()}, {"127.0.0.2", first.port()}};
  options.avoid_min = 20ms;
  options.avoid_max = 20ms;
  TestClient client(options);
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
  ScriptedServer second(
      [&](Peer& peer) {
        while (!peer.read_request().empty()) {
          std::this_thread::sleep_for(5ms);
          peer.write(answer("hello"));
        }
      },
      {.address = "127.0.0.2", .port = first.port(), .certificate_file = {}});
  std::this_thread::sleep_for(30ms);
  std::vector<TestClient::Call> calls;
  for (int i = 0; i < 12; ++i) calls.push_back(client.send(get(), collect()));
  for (const auto& call : calls) EXPECT_EQ(call.sink->result(), "hello");
  EXPECT_EQ(first.connections(), 2);
  EXPECT_EQ(second.connections(), 2);
}

// Accepts nothing: its queue of connections is full, so that connecting hangs.
class DeafListener {
 public:
  explicit DeafListener(std::uint16_t port) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    ::inet_pton(AF_INET, "127.0.0.3", &at.sin_addr);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(fd_, 0), 0);
    for (int& filler : fillers_) {
      filler = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      static_cast<void>(::connect(filler, reinterpret_cast<sockaddr*>(&at), sizeof at));
    }
  }
  ~DeafListener() {
    for (const int filler : fillers_) ::close(filler);
    ::close(fd_);
  }

 private:
  int fd_;
  int fillers_[3];
};

TEST(ConnectionPool, ConnectThatHangsEndsAndDoesNotHoldOthersUp) {
  ScriptedServer server(always(answer("hello")));
  const DeafListener deaf(server.port());
  auto options = TestClient::options_for(server.port(), 4);
  options.connect_timeout = 100ms;
  options.hosts = {{"127.0.0.3", server.port()}};
  {
    TestClient client(options);
    const auto result = client.send(get(), collect()).sink->result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(client.send(get(), collect(), 30ms).sink->error(), ErrorCode::kDeadlineExceeded);
    const auto call = client.send(get(), collect());
    client.cancel(call);
    EXPECT_EQ(call.sink->error(), ErrorCode::kCancelled);
  }
  options.connect_timeout = 5s;
  options.hosts = {{"127.0.0.3", server.port()}, {"127.0.0.1", server.port()}};
  TestClient client(options);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s) << "the other address is tried meanwhile";
}

TEST(ConnectionPool, ResolvesNames) {
  ScriptedServer server(always(answer("hello")));
  auto options = TestClient::options_for(server.port());
  options.hosts = {{"localhost", server.port()}};
  TestClient client(options);
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
}

TEST(ConnectionPool, UnknownNameIsAnError) {
  auto options = TestClient::options_for(80);
  options.hosts = {{"no-such-host.invalid", 80}};
  options.resolve_timeout = 5s;
  TestClient client(options);
  const auto result = client.send(get(), collect()).sink->result();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(result.error().message.find("no-such-host.invalid"), std::string::npos)
      << result.error().message;
}

}  // namespace
}  // namespace objectcache::http
