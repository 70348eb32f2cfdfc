#include "fake_s3/fake_s3.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "digest/hex.h"
#include "digest/md5.h"
#include "digest/sha256.h"
#include "fake_s3/raw_client.h"
#include "s3/uri.h"
#include "s3/xml.h"

namespace objectcache::fake_s3 {
namespace {

class FakeS3Test : public testing::Test {
 protected:
  void SetUp() override { start({}); }
  void start(FakeS3Options options) {
    server_.reset();
    auto server = FakeS3::start(std::move(options));
    ASSERT_TRUE(server.has_value()) << server.error().to_string();
    server_ = std::move(*server);
  }
  int put(std::string_view key, std::string_view body, const HeaderList& headers = {}) {
    RawClient client(*server_);
    const auto answer =
        client.exchange("PUT", "/test-bucket/" + s3::path_encoded(key), {}, headers, body);
    return answer ? answer->status : 0;
  }
  RawAnswer get(std::string_view key, const HeaderList& headers = {}) {
    RawClient client(*server_);
    const auto answer =
        client.exchange("GET", "/test-bucket/" + s3::path_encoded(key), {}, headers);
    return answer.value_or(RawAnswer{});
  }
  s3::ErrorDocument error_of(const RawAnswer& answer) {
    return s3::parse_error_document(answer.body);
  }

  std::unique_ptr<FakeS3> server_;
};

// ---------------------------------------------------------------- verbs

TEST_F(FakeS3Test, StoresAndServes) {
  EXPECT_EQ(put("a/b c", "hello world"), 200);
  const auto whole = get("a/b c");
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(whole.body, "hello world");
  const auto part = get("a/b c", {{"range", "bytes=6-10"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "world");
  EXPECT_EQ(part.header("Content-Range"), "bytes 6-10/11");
  EXPECT_EQ(part.header("ETag"), whole.header("ETag"));
  const auto cut = get("a/b c", {{"range", "bytes=6-100"}});
  EXPECT_EQ(cut.header("Content-Range"), "bytes 6-10/11");
  EXPECT_EQ(get("a/b c", {{"range", "bytes=11-12"}}).status, 416);
  EXPECT_EQ(get("a/b c", {{"range", "bytes=0-1,3-4"}}).status, 501);
  EXPECT_EQ(get("missing").status, 404);
  EXPECT_EQ(error_of(get("missing")).code, "NoSuchKey");

  RawClient client(*server_);
  const auto head = client.exchange("HEAD", "/test-bucket/a/b%20c");
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->header("Content-Length"), "11");
  // The same connection goes on: nothing was sent behind the head.
  EXPECT_EQ(client.exchange("HEAD", "/test-bucket/no")->status, 404);
  EXPECT_EQ(client.exchange("DELETE", "/test-bucket/a/b%20c")->status, 204);
  EXPECT_EQ(client.exchange("DELETE", "/test-bucket/a/b%20c")->status, 204);
  EXPECT_EQ(client.exchange("GET", "/test-bucket/a/b%20c")->status, 404);
  EXPECT_EQ(error_of(*client.exchange("GET", "/other-bucket/x")).code, "NoSuchBucket");
  EXPECT_EQ(client.exchange("HEAD", "/test-bucket")->status, 200);
  EXPECT_EQ(client.exchange("HEAD", "/other-bucket")->status, 404);
  EXPECT_EQ(server_->requests().back().connection, server_->connections_accepted());
}

TEST_F(FakeS3Test, ConditionsAreExact) {
  const HeaderList if_absent{{"if-none-match", "*"}};
  EXPECT_EQ(put("k", "one", if_absent), 200);
  EXPECT_EQ(put("k", "two", if_absent), 412);
  const std::string etag = get("k").header("ETag");
  EXPECT_EQ(get("k").body, "one");
  EXPECT_EQ(get("k", {{"if-match", etag}}).status, 200);
  EXPECT_EQ(get("k", {{"if-match", "\"other\""}}).status, 412);
  EXPECT_EQ(get("k", {{"if-match", etag.substr(1, etag.size() - 2)}}).status, 400);
  EXPECT_EQ(get("k", {{"if-none-match", etag}}).status, 304);
  EXPECT_EQ(put("k", "three", {{"if-match", "\"other\""}}), 412);
  EXPECT_EQ(put("k", "three", {{"if-match", etag}}), 200);
  EXPECT_EQ(put("k", "four", {{"if-match", etag}}), 412);
  EXPECT_EQ(put("no", "x", {{"if-match", etag}}), 404);
  EXPECT_EQ(put("k", "x", {{"if-none-match", etag}}), 501);
  // Equal bytes, another publication, another version.
  EXPECT_EQ(put("k", "three"), 200);
  const std::string second = get("k").header("ETag");
  EXPECT_EQ(put("k", "three"), 200);
  EXPECT_NE(get("k").header("ETag"), second);
}

TEST_F(FakeS3Test, OneOfManyRacingWritersWins) {
  std::atomic<int> created{0};
  std::atomic<int> refused{0};
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 16; ++i) {
      writers.emplace_back([&] {
        const int status = put("race", "x", {{"if-none-match", "*"}});
        created += status == 200 ? 1 : 0;
        refused += status == 412 ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(created, 1);
  EXPECT_EQ(refused, 15);
}

TEST_F(FakeS3Test, ListsInPages) {
  for (const char* key : {"a/1", "a/2", "b/1", "c", "d&<e", "z"}) EXPECT_EQ(put(key, "xy"), 200);
  RawClient client(*server_);
  const auto list = [&](s3::QueryBuilder query) {
    query.add("list-type", "2");
    const auto answer = client.exchange("GET", "/test-bucket", query.str());
    EXPECT_TRUE(answer.has_value());
    auto parsed = s3::parse_list_result(answer->body);
    EXPECT_TRUE(parsed.has_value()) << answer->body;
    return parsed.value_or(s3::ListResult{});
  };
  EXPECT_EQ(list({}).objects.size(), 6U);
  EXPECT_EQ(list({}).objects[4].key, "d&<e");
  EXPECT_EQ(list({}).objects[0].size_bytes, 2U);
  EXPECT_EQ(list(s3::QueryBuilder().add("encoding-type", "url")).objects[4].key, "d&<e");
  EXPECT_EQ(list(s3::QueryBuilder().add("prefix", "a/")).objects.size(), 2U);
  EXPECT_EQ(list(s3::QueryBuilder().add("start-after", "b/1")).objects.size(), 3U);

  const auto first = list(s3::QueryBuilder().add("delimiter", "/").add("max-keys", "2"));
  EXPECT_EQ(first.common_prefixes, (std::vector<std::string>{"a/", "b/"}));
  EXPECT_TRUE(first.truncated);
  const auto second = list(s3::QueryBuilder()
                               .add("delimiter", "/")
                               .add("max-keys", "2")
                               .add("continuation-token", first.next_continuation_token));
  EXPECT_TRUE(second.common_prefixes.empty());
  ASSERT_EQ(second.objects.size(), 2U);
  EXPECT_EQ(second.objects[0].key, "c");
  const auto last = list(s3::QueryBuilder()
                             .add("max-keys", "2")
                             .add("delimiter", "/")
                             .add("continuation-token", second.next_continuation_token));
  EXPECT_EQ(last.objects.size(), 1U);
  EXPECT_FALSE(last.truncated);
  EXPECT_EQ(client.exchange("GET", "/test-bucket", "continuation-token=x&list-type=2")->status,
            400);
  EXPECT_EQ(client.exchange("GET", "/test-bucket", "prefix=a")->status, 501);
}

TEST_F(FakeS3Test, DeletesManyWithAChecksumOnly) {
  for (const char* key : {"a", "b", "c"}) put(key, "x");
  RawClient client(*server_);
  const std::string body = s3::write_delete_request({.keys = {"a", "c", "none"}});
  EXPECT_EQ(client.exchange("POST", "/test-bucket", "delete=", {}, body)->status, 400);
  const std::string md5 = digest::base64(digest::md5(digest::bytes_of(body)));
  const auto answer =
      client.exchange("POST", "/test-bucket", "delete=", {{"content-md5", md5}}, body);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 200) << answer->body;
  EXPECT_EQ(s3::parse_delete_result(answer->body)->deleted.size(), 3U);
  EXPECT_EQ(server_->objects().count("test-bucket"), 1U);
  EXPECT_EQ(client.exchange("POST", "/test-bucket", "delete=", {{"content-md5", md5}}, body + " ")
                ->status,
            400);
}

// ---------------------------------------------------------------- strictness

TEST_F(FakeS3Test, ChecksEverySignature) {
  put("k", "body");
  RawClient client(*server_);
  ASSERT_TRUE(client.send("GET", "/test-bucket/k", {}, {}, {}, {{"range", "bytes=0-1"}}));
  EXPECT_EQ(client.receive()->status, 206);  // an unsigned Range is the client's own risk
  ASSERT_TRUE(client.send("GET", "/test-bucket/k", {}, {{"range", "bytes=0-1"}}, {},
                          {{"range", "bytes=0-2"}}));
  EXPECT_EQ(error_of(*client.receive()).code, "SignatureDoesNotMatch");
  client.credentials.secret_access_key = s3::Secret("wrong");
  EXPECT_EQ(error_of(*client.exchange("GET", "/test-bucket/k")).code, "SignatureDoesNotMatch");
  client.credentials.access_key_id = "NOBODY";
  EXPECT_EQ(error_of(*client.exchange("GET", "/test-bucket/k")).code, "InvalidAccessKeyId");
  ASSERT_TRUE(client.send_raw("GET /test-bucket/k HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_EQ(client.receive()->status, 403);
}

TEST_F(FakeS3Test, RefusesSkewedClocksWrongRegionsAndExpiredKeys) {
  RawClient client(*server_);
  client.clock_offset = std::chrono::minutes(16);
  auto answer = client.exchange("GET", "/test-bucket/k");
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(error_of(*answer).code, "RequestTimeTooSkewed");
  EXPECT_FALSE(error_of(*answer).server_time.empty());
  client.clock_offset = std::chrono::minutes(14);
  EXPECT_EQ(client.exchange("GET", "/test-bucket/k")->status, 404);
  client.clock_offset = {};
  client.region = "eu-west-1";
  answer = client.exchange("GET", "/test-bucket/k");
  EXPECT_EQ(error_of(*answer).code, "AuthorizationHeaderMalformed");
  EXPECT_EQ(error_of(*answer).region, "us-east-1");
  client.region = "us-east-1";
  auto expired = client.credentials;
  expired.session_token = s3::Secret("token");
  expired.expires_at = std::chrono::system_clock::now() - std::chrono::hours(1);
  server_->set_credentials({expired});
  EXPECT_EQ(error_of(*client.exchange("GET", "/test-bucket/k")).code, "InvalidToken");
  client.credentials = expired;
  EXPECT_EQ(error_of(*client.exchange("GET", "/test-bucket/k")).code, "ExpiredToken");
}

TEST_F(FakeS3Test, RefusesWhatItDoesNotKnow) {
  RawClient client(*server_);
  EXPECT_EQ(client.exchange("GET", "/test-bucket/k", "versionId=1")->status, 400);
  EXPECT_EQ(client.exchange("GET", "/test-bucket/k", {}, {{"x-amz-new-thing", "1"}})->status, 400);
  EXPECT_EQ(client.exchange("GET", "/test-bucket/k", {}, {{"if-range", "x"}})->status, 400);
  EXPECT_EQ(client.exchange("PATCH", "/test-bucket/k")->status, 405);
  EXPECT_EQ(client.exchange("GET", "/test-bucket/k", {}, {{"range", "lines=1-2"}})->status, 404);
  put("k", "x");
  EXPECT_EQ(client.exchange("GET", "/test-bucket/k", {}, {{"range", "lines=1-2"}})->status, 400);
}

TEST_F(FakeS3Test, RefusesBodiesThatDifferFromTheirChecksums) {
  RawClient client(*server_);
  ASSERT_TRUE(client.send("PUT", "/test-bucket/k", {}, {}, "signed body", {}));
  EXPECT_EQ(client.receive()->status, 200);
  const HeaderList other{{"content-length", "3"}};
  ASSERT_TRUE(client.send("PUT", "/test-bucket/k", {}, {}, "abc", other));
  EXPECT_EQ(client.receive()->status, 200);
  // The body changes behind the signature's back.
  ASSERT_TRUE(client.send("PUT", "/test-bucket/k", {}, {}, "", other));
  ASSERT_TRUE(client.send_raw("xyz"));
  EXPECT_EQ(error_of(*client.receive()).code, "XAmzContentSHA256Mismatch");
  EXPECT_EQ(put("k", "abc", {{"x-amz-checksum-crc32c", "AAAAAA=="}}), 400);
  EXPECT_EQ(put("k", "123456789", {{"x-amz-checksum-crc32c", "4waSgw=="}}), 200);
  EXPECT_EQ(put("k", "abc", {{"content-md5", "AAAA"}}), 400);
  EXPECT_EQ(get("k").body, "123456789");
}

TEST_F(FakeS3Test, RefusesWhatIsNotHttp) {
  for (const char* text :
       {"hello\r\n\r\n", "GET / HTTP/1.0\r\nHost: x\r\n\r\n", "GET /\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", "GET / HTTP/1.1\nHost: x\r\n\r\n",
        "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"}) {
    RawClient client(*server_);
    ASSERT_TRUE(client.send_raw(text));
    const auto answer = client.receive();
    ASSERT_TRUE(answer.has_value()) << text;
    EXPECT_EQ(answer->status, 400) << text;
    EXPECT_EQ(answer->header("Connection"), "close");
    EXPECT_EQ(client.rest(), "");
    EXPECT_EQ(client.last_error(), 0);
  }
  RawClient client(*server_);
  client.send_raw(std::string(40'000, 'x'));
  EXPECT_EQ(client.receive()->status, 400);
}

TEST_F(FakeS3Test, AnswersPipelinedRequestsAndExpectContinue) {
  put("k", "0123456789");
  RawClient client(*server_);
  client.send("GET", "/test-bucket/k", {}, {{"range", "bytes=0-2"}});
  client.send("GET", "/test-bucket/k", {}, {{"range", "bytes=3-5"}});
  EXPECT_EQ(client.receive()->body, "012");
  EXPECT_EQ(client.receive()->body, "345");
  client.send("PUT", "/test-bucket/k", {}, {{"expect", "100-continue"}}, "abc");
  EXPECT_EQ(client.receive(false)->status, 100);
  EXPECT_EQ(client.receive()->status, 200);
}

// ---------------------------------------------------------------- options

TEST_F(FakeS3Test, VirtualHostsBasePathsAndMd5Etags) {
  FakeS3Options options;
  options.base_path = "/gate/way";
  options.virtual_host_suffix = "store.local";
  options.etags = EtagMode::kMd5;
  start(std::move(options));
  RawClient client(*server_);
  EXPECT_EQ(client.exchange("PUT", "/gate/way/test-bucket/k", {}, {}, "abc")->status, 200);
  EXPECT_EQ(client.exchange("GET", "/test-bucket/k")->status, 404);
  client.host = "test-bucket.store.local:80";
  const auto answer = client.exchange("GET", "/gate/way/k");
  EXPECT_EQ(answer->body, "abc");
  EXPECT_EQ(answer->header("ETag"), "\"900150983cd24fb0d6963f7d28e17f72\"");
}

TEST_F(FakeS3Test, LatencyAndLimitsOfConnections) {
  FakeS3Options options;
  options.latency = std::chrono::milliseconds(30);
  options.connections_max = 2;
  start(std::move(options));
  RawClient client(*server_);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(client.exchange("GET", "/test-bucket/k")->status, 404);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(30));
  RawClient second(*server_);
  EXPECT_TRUE(second.exchange("GET", "/test-bucket/k").has_value());
  RawClient third(*server_);
  EXPECT_FALSE(third.exchange("GET", "/test-bucket/k").has_value());
  EXPECT_EQ(server_->connections_accepted(), 2U);
}

TEST_F(FakeS3Test, RecordsRequests) {
  RawClient client(*server_);
  client.exchange("PUT", "/test-bucket/k", {}, {}, "abc");
  client.exchange("GET", "/test-bucket/k", {}, {{"range", "bytes=0-0"}});
  const auto requests = server_->requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].method, "PUT");
  EXPECT_EQ(requests[0].body_bytes, 3U);
  EXPECT_EQ(requests[0].status, 200);
  EXPECT_EQ(requests[1].target, "/test-bucket/k");
  EXPECT_EQ(requests[1].header("Range"), "bytes=0-0");
  EXPECT_EQ(requests[1].header("if-match"), std::nullopt);
  EXPECT_EQ(requests[0].connection, requests[1].connection);
  EXPECT_LE(requests[0].arrived, requests[1].arrived);
}

TEST_F(FakeS3Test, StopsWithConnectionsOpenAndStalled) {
  server_->faults().add({.kind = FaultKind::kStallUnanswered, .key_contains = "stall"});
  RawClient idle(*server_);
  idle.exchange("GET", "/test-bucket/k");
  RawClient stalled(*server_);
  stalled.send("GET", "/test-bucket/stall");
  RawClient half(*server_);
  half.send_raw("GET /test-bu");
  server_->stop();
  EXPECT_FALSE(stalled.receive().has_value());
  EXPECT_EQ(server_->connections_open(), 0U);
}

}  // namespace
}  // namespace objectcache::fake_s3
