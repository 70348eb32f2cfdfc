// One exchange at a time against a server that answers rightly and wrongly.
#include "http/connection.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "http/http_test_client.h"
#include "http/scripted_server.h"

namespace objectcache::http {
namespace {

using namespace std::chrono_literals;
using Kind = BodyPlan::Kind;
using Peer = ScriptedServer::Peer;

// Answers each request of a connection with the same bytes.
ScriptedServer::Script always(std::string bytes) {
  return [bytes = std::move(bytes)](Peer& peer) {
    while (!peer.read_request().empty()) peer.write(bytes);
  };
}

TEST(Connection, FillsSegmentsAndStaysUsable) {
  const std::string body = pattern(3'000'000);
  ScriptedServer server(always(answer(body)));
  TestClient client(server.port());
  for (const std::size_t piece : {SIZE_MAX, 100'000UL, 4096UL, 1000UL}) {
    std::string out(body.size(), 'x');
    const auto call = client.send(get(), into(out, piece));
    EXPECT_EQ(call.sink->result(), "");
    EXPECT_EQ(call.sink->head->status, 200);
    EXPECT_EQ(call.sink->body_bytes, body.size());
    EXPECT_TRUE(out == body);
  }
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(client.stats().exchanges_on_warm, 3U);
  EXPECT_GT(client.stats().bytes_in, 4 * body.size());
}

TEST(Connection, SendsHeadAndBodyAsTheyAre) {
  const std::string body = pattern(5'000'000);
  std::promise<std::pair<std::string, std::string>> seen;
  ScriptedServer server([&](Peer& peer) {
    std::string got;
    std::string head = peer.read_request(&got);
    seen.set_value({std::move(head), std::move(got)});
    peer.write(answer(""));
    peer.wait_for_close();
  });
  TestClient client(server.port());
  Request put{.method = "PUT",
              .target = "/b/k",
              .headers = {{"If-None-Match", "*"}},
              .body = {},
              .idempotent = false};
  auto rest = std::as_bytes(std::span(body));
  while (!rest.empty()) {
    const std::size_t n = std::min<std::size_t>(30'001, rest.size());
    put.body.push_back(rest.first(n));
    put.body.emplace_back();
    rest = rest.subspan(n);
  }
  const auto call = client.send(std::move(put), plan_of(Kind::kDiscard));
  EXPECT_EQ(call.sink->result(), "");
  const auto [head, got] = seen.get_future().get();
  EXPECT_EQ(head, "PUT /b/k HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                      "\r\nIf-None-Match: *\r\nContent-Length: 5000000\r\n\r\n");
  EXPECT_TRUE(got == body);
}

TEST(Connection, BearsAnAnswerInSingleBytes) {
  const std::string head = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 Partial Content\r\n";
  const std::string body = pattern(300);
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    peer.write_slowly(head + "Content-Length: 300\r\n\r\n" + body);
    peer.read_request();
    peer.write_slowly(head + "Transfer-Encoding: chunked\r\n\r\n12c\r\n" + body + "\r\n0\r\n\r\n");
    peer.wait_for_close();
  });
  TestClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    std::string out(300, 'x');
    const auto call = client.send(get(), into(out, 70));
    EXPECT_EQ(call.sink->result(), "");
    EXPECT_EQ(call.sink->head->status, 206);
    EXPECT_TRUE(out == body);
    EXPECT_EQ(call.sink->body_bytes, 300U);
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(Connection, AnswerMayBeCutAnywhere) {
  const std::string whole = answer("0123456789");
  std::atomic<std::size_t> cut = 1;
  ScriptedServer server([&](Peer& peer) {
    while (!peer.read_request().empty()) {
      peer.write(whole.substr(0, cut));
      std::this_thread::sleep_for(300us);
      peer.write(whole.substr(cut));
    }
  });
  TestClient client(server.port());
  for (; cut < whole.size(); ++cut) {
    std::string out(10, 'x');
    EXPECT_EQ(client.send(get(), into(out, 3)).sink->result(), "") << cut;
    EXPECT_EQ(out, "0123456789") << cut;
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(Connection, CollectsAndDiscardsBodies) {
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
  ScriptedServer server([&](Peer& peer) {
    for (;;) {
      const std::string request = peer.read_request();
      if (request.empty()) return;
      if (request.starts_with("GET /chunked")) {
        peer.write(chunked);
      } else if (request.starts_with("HEAD")) {
        peer.write("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n");
      } else if (request.starts_with("DELETE")) {
        peer.write("HTTP/1.1 204 No Content\r\n\r\n");
      } else {
        peer.write(answer("hello world", "404 Not Found"));
      }
    }
  });
  TestClient client(server.port());
  EXPECT_EQ(client.send(get("/chunked"), collect()).sink->result(), "hello world");
  EXPECT_EQ(client.send(get("/plain"), collect(11)).sink->result(), "hello world");
  EXPECT_EQ(client.send(get("/plain"), plan_of(Kind::kDiscard)).sink->result(), "");
  EXPECT_EQ(client.send(get("/chunked"), plan_of(Kind::kDiscard)).sink->result(), "");
  Request head = get("/plain");
  head.method = "HEAD";
  const auto call = client.send(head, collect());
  EXPECT_EQ(call.sink->result(), "");
  EXPECT_EQ(call.sink->head->content_length, 12345U);
  head.method = "DELETE";
  EXPECT_EQ(client.send(head, collect()).sink->result(), "");
  EXPECT_EQ(server.connections(), 1);
  // Beyond what is wanted.
  EXPECT_EQ(client.send(get("/chunked"), collect(10)).sink->error(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(client.send(get("/plain"), collect(10)).sink->error(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(server.connections(), 2);
  EXPECT_EQ(client.send(get("/plain"), plan_of(Kind::kDiscard, 10)).sink->result(), "");
  EXPECT_EQ(client.send(get("/chunked"), plan_of(Kind::kDiscard, 10)).sink->result(), "");
  EXPECT_EQ(client.send(get("/plain"), plan_of(Kind::kAbort)).sink->result(), "");
  EXPECT_EQ(client.send(get("/plain"), collect()).sink->result(), "hello world");
  EXPECT_EQ(server.connections(), 6) << "each of these closes the connection";
}

TEST(Connection, ReadsABodyThatEndsWithTheConnection) {
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.0 200 OK\r\n\r\nhello");
  });
  TestClient client(server.port());
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
  std::string out(5, 'x');
  EXPECT_EQ(client.send(get(), into(out)).sink->result(), "");
  EXPECT_EQ(out, "hello");
  std::string longer(6, 'x');
  EXPECT_EQ(client.send(get(), into(longer)).sink->error(), ErrorCode::kCorrupt);
  EXPECT_EQ(server.connections(), 3);
}

struct BadAnswer {
  std::string_view name;
  std::string bytes;
  ErrorCode code;
};

TEST(Connection, TellsBadAnswersApart) {
  const std::string ten = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
  const BadAnswer cases[] = {
      {"nothing", "", ErrorCode::kUnavailable},
      {"half a head", "HTTP/1.1 200 OK\r\nCont", ErrorCode::kUnavailable},
      {"head only", ten, ErrorCode::kUnavailable},
      {"short body", ten + "123456789", ErrorCode::kUnavailable},
      {"announced shorter", answer("123456789"), ErrorCode::kCorrupt},
      {"announced longer", answer("1234567890a"), ErrorCode::kCorrupt},
      {"surplus", answer("1234567890") + "a", ErrorCode::kCorrupt},
      {"not HTTP", "220 ready\r\n\r\n", ErrorCode::kCorrupt},
      {"huge head", "HTTP/1.1 200 OK\r\nx: " + std::string(40'000, 'y') + "\r\n\r\n",
       ErrorCode::kLimitExceeded},
      {"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
       ErrorCode::kCorrupt},
      {"chunks cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345",
       ErrorCode::kUnavailable},
      {"chunks too long",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n",
       ErrorCode::kCorrupt},
      {"chunks too short",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n123\r\n0\r\n\r\n",
       ErrorCode::kCorrupt},
      {"behind the chunks",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n0\r\n\r\nx",
       ErrorCode::kCorrupt},
      {"no body where one is due", "HTTP/1.1 204 No Content\r\n\r\n", ErrorCode::kCorrupt},
  };
  for (const BadAnswer& c : cases) {
    ScriptedServer server([&](Peer& peer) {
      peer.read_request();
      peer.write(c.bytes);
    });
    TestClient client(server.port());
    std::string out(10, 'x');
    const auto call = client.send(get(), into(out));
    const auto result = call.sink->result();
    ASSERT_FALSE(result) << c.name;
    EXPECT_EQ(result.error().code, c.code) << c.name << ": " << result.error().to_string();
    EXPECT_EQ(client.stats().now_connections, 0U) << c.name;
  }
}

TEST(Connection, SurplusBehindALargeBodyIsFound) {
  const std::string body = pattern(500'000);
  ScriptedServer server(always(answer(body) + "HTTP/1.1 200 OK\r\n"));
  TestClient client(server.port());
  std::string out(body.size(), 'x');
  // Whether it shows at once or with the next request: never is it taken for an answer.
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    const auto call = client.send(get(), into(out));
    if (const auto result = call.sink->result()) {
      EXPECT_TRUE(out == body);
      ++good;
    } else {
      EXPECT_EQ(result.error().code, ErrorCode::kCorrupt) << result.error().to_string();
    }
  }
  EXPECT_LT(good, 20);
}

TEST(Connection, ResetIsUnavailable) {
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    if (peer.number == 1) peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123");
    if (peer.number == 1) std::this_thread::sleep_for(20ms);
    peer.reset();
  });
  TestClient client(server.port());
  std::string out(10, 'x');
  EXPECT_EQ(client.send(get(), into(out)).sink->error(), ErrorCode::kUnavailable);
  EXPECT_EQ(client.send(get(), into(out)).sink->error(), ErrorCode::kUnavailable);
}

TEST(Connection, HearsAnEarlyRefusalOfALargeBody) {
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nConnection: close\r\n\r\ndenied");
    peer.wait_for_close();
  });
  TestClient client(server.port());
  const std::string body(50'000'000, 'x');
  Request put{.method = "PUT",
              .target = "/k",
              .headers = {},
              .body = {std::as_bytes(std::span(body))},
              .idempotent = false};
  // The server reads on, so that all may have been sent: both ways the answer is heard.
  const auto call = client.send(put, collect());
  EXPECT_EQ(call.sink->result(), "denied");
  EXPECT_EQ(call.sink->head->status, 403);
}

TEST(Connection, SuccessBeforeTheRequestIsCompleteIsNotBelieved) {
  std::promise<void> release;
  ScriptedServer server([&, done = release.get_future().share()](Peer& peer) {
    peer.read_request();
    peer.write(answer(""));
    done.wait_for(5s);
  });
  TestClient client(server.port());
  const std::string body(50'000'000, 'x');
  Request put{.method = "PUT",
              .target = "/k",
              .headers = {},
              .body = {std::as_bytes(std::span(body))},
              .idempotent = false};
  EXPECT_EQ(client.send(put, collect()).sink->error(), ErrorCode::kCorrupt);
  release.set_value();
}

// ---------------------------------------------------------------- grants

TEST(Connection, ReadsNoMoreThanGranted) {
  const std::string body = pattern(1'000'000);
  ScriptedServer server(always(answer(body)));
  TestClient client(server.port());
  std::string out(body.size(), 'x');
  const auto call = client.send(get(), into(out, 50'000), 8s, 100ms, 10);
  const auto seen = [&] { return run_on(client.reactor(), [&] { return call.sink->body_bytes; }); };
  while (seen() < 10) std::this_thread::sleep_for(1ms);
  // Far beyond the stall timeout: a paused exchange does not stall.
  std::this_thread::sleep_for(250ms);
  EXPECT_EQ(seen(), 10U);
  EXPECT_EQ(out.substr(10), std::string(body.size() - 10, 'x'));
  client.grant(call, 123'456);
  while (seen() < 123'466) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(seen(), 123'466U);
  EXPECT_EQ(out.substr(123'466), std::string(body.size() - 123'466, 'x'));
  client.grant(call, UINT64_MAX);
  client.grant(call, 5);
  EXPECT_EQ(call.sink->result(), "");
  EXPECT_TRUE(out == body);
}

TEST(Connection, NothingGrantedMeansNothingTouched) {
  ScriptedServer server(always(answer("0123456789")));
  TestClient client(server.port());
  std::string out(10, 'x');
  const auto call = client.send(get(), into(out), 100ms, 20ms, 0);
  EXPECT_EQ(call.sink->error(), ErrorCode::kDeadlineExceeded) << "the deadline holds while paused";
  EXPECT_EQ(out, "xxxxxxxxxx");
  // Small bodies of errors need no grant.
  EXPECT_EQ(client.send(get(), collect(), 8s, 8s, 0).sink->result(), "0123456789");
}

TEST(Connection, GrantsMayComeFromInsideTheSink) {
  const std::string body = pattern(100'000);
  ScriptedServer server(always(answer(body)));
  TestClient client(server.port());
  std::string out(body.size(), 'x');
  std::shared_ptr<Exchange> exchange;
  auto sink = std::make_shared<RecordingSink>(into(out));
  sink->in_body = [&](std::uint64_t) { exchange->grant(999); };
  run_on(client.reactor(), [&] {
    exchange = client.pool().send(
        get(), {.deadline = client.reactor().now() + 8s, .stall_timeout = 8s, .grant_bytes = 1},
        sink);
  });
  EXPECT_EQ(sink->result(), "");
  EXPECT_TRUE(out == body);
  EXPECT_GE(sink->body_calls, 100);
}

// ---------------------------------------------------------------- time

TEST(Connection, DeadlineHoldsAtEachStage) {
  // 0: no answer; 1: half a head; 2: a body that never ends.
  ScriptedServer server([&](Peer& peer) {
    const std::string request = peer.read_request();
    if (request.starts_with("GET /1")) peer.write("HTTP/1.1 200");
    if (request.starts_with("GET /2")) peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1");
    peer.wait_for_close();
  });
  TestClient client(server.port());
  for (const std::string target : {"/0", "/1", "/2"}) {
    std::string out(10, 'x');
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(client.send(get(target), into(out), 60ms).sink->error(),
              ErrorCode::kDeadlineExceeded);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, 60ms);
    EXPECT_LT(took, 1s);
  }
}

TEST(Connection, DeadlineHoldsWhileSending) {
  std::promise<void> release;
  ScriptedServer server([&, done = release.get_future().share()](Peer& peer) {
    static_cast<void>(peer);
    done.wait_for(5s);
  });
  TestClient client(server.port());
  const std::string body(50'000'000, 'x');
  Request put{.method = "PUT",
              .target = "/k",
              .headers = {},
              .body = {std::as_bytes(std::span(body))},
              .idempotent = false};
  EXPECT_EQ(client.send(put, collect(), 100ms).sink->error(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(client.send(put, collect(), 5s, 60ms).sink->error(), ErrorCode::kUnavailable)
      << "stall";
  release.set_value();
}

TEST(Connection, StallIsNoticedButSlownessIsNot) {
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    for (int i = 0; i < (peer.number == 0 ? 5 : 10); ++i) {
      std::this_thread::sleep_for(15ms);
      peer.write("a");
    }
    peer.wait_for_close();
  });
  TestClient client(server.port());
  std::string out(10, 'x');
  const auto call = client.send(get(), into(out), 8s, 100ms);
  const auto result = call.sink->result();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(result.error().message.find("stalled"), std::string::npos) << result.error().message;
  EXPECT_EQ(call.sink->body_bytes, 5U);
  EXPECT_EQ(client.send(get(), into(out), 8s, 100ms).sink->result(), "")
      << "150 ms in all, but never 100 still";
}

TEST(Connection, PassedDeadlineSendsNothing) {
  ScriptedServer server(always(answer("")));
  TestClient client(server.port());
  EXPECT_EQ(client.send(get(), collect(), -1s).sink->error(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(server.connections(), 0);
}

// ---------------------------------------------------------------- cancel

TEST(Connection, CancelAtEachStage) {
  // 0: no answer; 1: half a head; 2: half a body that is too long to drain.
  ScriptedServer server([&](Peer& peer) {
    const std::string request = peer.read_request();
    if (request.starts_with("GET /1")) peer.write("HTTP/1.1 200");
    if (request.starts_with("GET /2")) {
      peer.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n1");
    }
    peer.wait_for_close();
  });
  TestClient client(server.port());
  for (const std::string target : {"/0", "/1", "/2"}) {
    for (const auto wait : {0ms, 5ms}) {
      std::string out(1'000'000, 'x');
      const auto call = client.send(get(target), into(out));
      std::this_thread::sleep_for(wait);
      client.cancel(call);
      EXPECT_EQ(call.sink->error(), ErrorCode::kCancelled);
      client.cancel(call);
    }
  }
}

TEST(Connection, NothingIsWrittenAfterCancel) {
  const std::string body = pattern(2'000'000);
  ScriptedServer server(always(answer(body)));
  TestClient client(server.port(), 4);
  for (int i = 0; i < 50; ++i) {
    std::string out(body.size(), 'x');
    const auto call = client.send(get(), into(out));
    std::this_thread::sleep_for(std::chrono::microseconds(i * 40));
    client.cancel(call);
    const auto result = call.sink->result();
    if (result) continue;  // It was faster.
    EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
    std::fill(out.begin(), out.end(), 'y');
    std::this_thread::sleep_for(1ms);
    EXPECT_EQ(out.find_first_not_of('y'), std::string::npos);
  }
}

TEST(Connection, CancelledShortRestIsDrainedAndTheConnectionKept) {
  std::promise<void> go;
  ScriptedServer server([&, gone = go.get_future().share()](Peer& peer) {
    bool first = true;
    while (!peer.read_request().empty()) {
      if (std::exchange(first, false)) {
        peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12");
        gone.wait_for(5s);
        peer.write("34567890");
      } else {
        peer.write(answer("next"));
      }
    }
  });
  TestClient client(server.port());
  std::string out(10, 'x');
  const auto call = client.send(get(), into(out));
  while (run_on(client.reactor(), [&] { return call.sink->body_bytes; }) < 2)
    std::this_thread::sleep_for(1ms);
  client.cancel(call);
  EXPECT_EQ(call.sink->error(), ErrorCode::kCancelled);
  const auto next = client.send(get(), collect());
  go.set_value();
  EXPECT_EQ(next.sink->result(), "next");
  EXPECT_EQ(out, "12xxxxxxxx");
  EXPECT_EQ(server.connections(), 1);
}

TEST(Connection, DrainingGivesUpSoon) {
  ScriptedServer server([&](Peer& peer) {
    peer.read_request();
    if (peer.number == 0) {
      peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12");
    } else {
      peer.write(answer("fresh"));
    }
    peer.wait_for_close();
  });
  TestClient client(server.port());
  std::string out(10, 'x');
  const auto call = client.send(get(), into(out));
  while (run_on(client.reactor(), [&] { return call.sink->body_bytes; }) < 2)
    std::this_thread::sleep_for(1ms);
  client.cancel(call);
  EXPECT_EQ(call.sink->error(), ErrorCode::kCancelled);
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "fresh");
}

TEST(Connection, CancelFromInsideTheSink) {
  const std::string body = pattern(1'000'000);
  ScriptedServer server(always(answer(body)));
  TestClient client(server.port());
  for (const bool in_head : {true, false}) {
    std::string out(body.size(), 'x');
    std::shared_ptr<Exchange> exchange;
    auto sink = std::make_shared<RecordingSink>(into(out));
    const auto cancel = [&] {
      exchange->cancel();
      EXPECT_FALSE(sink->ended());
    };
    if (in_head) sink->in_head = cancel;
    if (!in_head) sink->in_body = [&](std::uint64_t) { cancel(); };
    run_on(client.reactor(), [&] {
      exchange = client.pool().send(
          get(), {.deadline = client.reactor().now() + 8s, .stall_timeout = 8s}, sink);
    });
    EXPECT_EQ(sink->error(), ErrorCode::kCancelled);
    EXPECT_LE(sink->body_calls, 1);
  }
}

TEST(Connection, NewRequestFromInsideOnEndUsesTheSameConnection) {
  ScriptedServer server(always(answer("hello")));
  TestClient client(server.port(), 4);
  auto second = std::make_shared<RecordingSink>(collect());
  auto first = std::make_shared<RecordingSink>(collect());
  first->in_end = [&] {
    client.pool().send(get(), {.deadline = client.reactor().now() + 8s, .stall_timeout = 8s},
                       second);
  };
  run_on(client.reactor(), [&] {
    client.pool().send(get(), {.deadline = client.reactor().now() + 8s, .stall_timeout = 8s},
                       first);
  });
  EXPECT_EQ(second->result(), "hello");
  EXPECT_EQ(server.connections(), 1);
}

}  // namespace
}  // namespace objectcache::http
