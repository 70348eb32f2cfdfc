#include "http/tls.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <future>
#include <string>

#include "http/http_test_client.h"
#include "http/scripted_server.h"

namespace objectcache::http {
namespace {

using namespace std::chrono_literals;
using Peer = ScriptedServer::Peer;

class Tls : public testing::Test {
 protected:
  Tls() {
    std::string name = testing::TempDir() + "oc-tls-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~Tls() override { std::filesystem::remove_all(folder_); }

  static ScriptedServer::Script always(std::string bytes) {
    return [bytes = std::move(bytes)](Peer& peer) {
      while (!peer.read_request().empty()) peer.write(bytes);
    };
  }
  ConnectionPool::Options options(const ScriptedServer& server) const {
    auto out = TestClient::options_for(server.port());
    out.tls = true;
    out.ca_file = folder_ + "/ca.pem";
    return out;
  }
  ScriptedServer::Options secure() const {
    return {.address = "127.0.0.1", .port = 0, .certificate_file = folder_ + "/server.pem"};
  }

  std::string folder_;
};

TEST_F(Tls, FillsSegmentsAndKeepsTheConnection) {
  make_test_certificates(folder_, "127.0.0.1");
  const std::string body = pattern(3'000'000);
  ScriptedServer server(always(answer(body)), secure());
  TestClient client(options(server));
  for (const std::size_t piece : {SIZE_MAX, 100'000UL, 4096UL}) {
    std::string out(body.size(), 'x');
    const auto call = client.send(get(), into(out, piece));
    const auto result = call.sink->result();
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_TRUE(out == body);
    EXPECT_EQ(call.sink->body_bytes, body.size());
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(Tls, SendsLargeBodies) {
  make_test_certificates(folder_, "127.0.0.1");
  const std::string body = pattern(3'000'000);
  std::promise<std::string> seen;
  ScriptedServer server(
      [&](Peer& peer) {
        std::string got;
        peer.read_request(&got);
        seen.set_value(std::move(got));
        peer.write(answer("thanks"));
        peer.wait_for_close();
      },
      secure());
  TestClient client(options(server));
  Request put{.method = "PUT", .target = "/", .headers = {}, .body = {}, .idempotent = false};
  put.body = {std::as_bytes(std::span(body)).first(1'000'001), ConstSegment{},
              std::as_bytes(std::span(body)).subspan(1'000'001)};
  EXPECT_EQ(client.send(put, collect()).sink->result(), "thanks");
  EXPECT_TRUE(seen.get_future().get() == body);
}

TEST_F(Tls, AnswerMayComeInTinyRecords) {
  make_test_certificates(folder_, "127.0.0.1");
  ScriptedServer server(
      [&](Peer& peer) {
        while (!peer.read_request().empty()) peer.write_slowly(answer("0123456789"));
      },
      secure());
  TestClient client(options(server));
  for (int i = 0; i < 3; ++i) {
    std::string out(10, 'x');
    EXPECT_EQ(client.send(get(), into(out, 4)).sink->result(), "");
    EXPECT_EQ(out, "0123456789");
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(Tls, GrantsHoldDecryptedBytesBack) {
  make_test_certificates(folder_, "127.0.0.1");
  const std::string body = pattern(200'000);
  ScriptedServer server(always(answer(body)), secure());
  TestClient client(options(server));
  std::string out(body.size(), 'x');
  const auto call = client.send(get(), into(out), 8s, 100ms, 100);
  const auto seen = [&] { return run_on(client.reactor(), [&] { return call.sink->body_bytes; }); };
  while (seen() < 100) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(150ms);
  EXPECT_EQ(seen(), 100U);
  EXPECT_EQ(out.substr(100), std::string(body.size() - 100, 'x'));
  client.grant(call, 1000);
  while (seen() < 1100) std::this_thread::sleep_for(1ms);
  client.grant(call, UINT64_MAX);
  EXPECT_EQ(call.sink->result(), "");
  EXPECT_TRUE(out == body);
}

TEST_F(Tls, EarlyEndAndSurplusAreNoticed) {
  make_test_certificates(folder_, "127.0.0.1");
  ScriptedServer server(
      [&](Peer& peer) {
        peer.read_request();
        if (peer.number == 0) peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123");
        if (peer.number == 1) peer.write(answer("1234567890") + "x");
      },
      secure());
  TestClient client(options(server));
  std::string out(10, 'x');
  EXPECT_EQ(client.send(get(), into(out)).sink->error(), ErrorCode::kUnavailable);
  EXPECT_EQ(client.send(get(), into(out)).sink->error(), ErrorCode::kCorrupt);
}

TEST_F(Tls, SessionsAreResumed) {
  make_test_certificates(folder_, "127.0.0.1");
  ScriptedServer server(
      [&](Peer& peer) {
        peer.read_request();
        peer.write(answer("hello"));
      },
      secure());
  TestClient client(options(server));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
    std::this_thread::sleep_for(3ms);
  }
  EXPECT_EQ(client.stats().connections_opened, 3U);
  EXPECT_EQ(client.stats().tls_sessions_reused, 2U);
}

TEST_F(Tls, UntrustedCertificateIsRefusedWithAdvice) {
  make_test_certificates(folder_, "127.0.0.1");
  ScriptedServer server(always(answer("hello")), secure());
  auto o = options(server);
  o.ca_file.clear();
  TestClient client(o);
  const auto result = client.send(get(), collect()).sink->result();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(result.error().message.find("certificate of host 127.0.0.1 is not trusted"),
            std::string::npos)
      << result.error().message;
  EXPECT_NE(result.error().message.find("ca=FILE"), std::string::npos);
  o.insecure = true;
  TestClient careless(o);
  EXPECT_EQ(careless.send(get(), collect()).sink->result(), "hello");
}

TEST_F(Tls, CertificateOfAnotherNameIsRefused) {
  make_test_certificates(folder_, "store.example");
  ScriptedServer server(always(answer("hello")), secure());
  auto o = options(server);
  {
    TestClient client(o);
    const auto result = client.send(get(), collect()).sink->result();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message.find("another name"), std::string::npos)
        << result.error().message;
  }
  o.tls_name = "store.example";
  TestClient client(o);
  EXPECT_EQ(client.send(get(), collect()).sink->result(), "hello");
}

TEST_F(Tls, ExpiredCertificateIsRefused) {
  make_test_certificates(folder_, "127.0.0.1", true);
  ScriptedServer server(always(answer("hello")), secure());
  TestClient client(options(server));
  const auto result = client.send(get(), collect()).sink->result();
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("expired"), std::string::npos) << result.error().message;
}

TEST_F(Tls, PlainServerIsNotMistaken) {
  make_test_certificates(folder_, "127.0.0.1");
  ScriptedServer server([&](Peer& peer) {
    peer.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    peer.wait_for_close();
  });
  TestClient client(options(server));
  EXPECT_EQ(client.send(get(), collect()).sink->error(), ErrorCode::kUnavailable);
}

TEST_F(Tls, HandshakeThatHangsEnds) {
  make_test_certificates(folder_, "127.0.0.1");
  ScriptedServer server([&](Peer& peer) { peer.wait_for_close(); });
  auto o = options(server);
  o.connect_timeout = 60ms;
  TestClient client(o);
  EXPECT_EQ(client.send(get(), collect()).sink->error(), ErrorCode::kUnavailable);
}

TEST_F(Tls, CaFileWithoutACertificateIsRefused) {
  ASSERT_FALSE(TlsContext::create_client({.ca_file = "/dev/null", .insecure = false}));
  ASSERT_FALSE(TlsContext::create_client({.ca_file = folder_ + "/none", .insecure = false}));
}

}  // namespace
}  // namespace objectcache::http
