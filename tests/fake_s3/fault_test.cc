#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "fake_s3/fake_s3.h"
#include "fake_s3/raw_client.h"
#include "s3/xml.h"

namespace objectcache::fake_s3 {
namespace {

// Where silence is what a test expects; long enough for an answer on a busy machine.
constexpr std::chrono::milliseconds kShortPatience(700);
constexpr std::chrono::milliseconds kLongPatience(20'000);

// An object of 100 bytes whose n-th byte is n, under "a"; one of 200 bytes under "b".
class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = FakeS3::start({});
    ASSERT_TRUE(server.has_value());
    server_ = std::move(*server);
    for (int i = 0; i < 200; ++i) bytes_.push_back(static_cast<char>(i));
    store("a", bytes_.substr(0, 100));
    store("b", std::string(200, 'b'));
  }
  void store(std::string_view key, std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    ASSERT_TRUE(server_->objects()
                    .put("test-bucket", key, {bytes.begin(), bytes.end()},
                         ObjectTable::Condition::kNone, {})
                    .has_value());
  }
  // Bytes 10 to 19 of "a", with this fault once.
  std::optional<RawAnswer> get_with(RawClient& client, Fault fault) {
    server_->faults().clear();
    fault.times = 1;
    server_->faults().add(std::move(fault));
    return client.exchange("GET", "/test-bucket/a", {}, {{"range", "bytes=10-19"}});
  }
  // Afterwards all is well again, on the same connection or on a new one.
  void expect_healthy(RawClient& client) {
    const auto answer = client.exchange("GET", "/test-bucket/a", {}, {{"range", "bytes=10-19"}});
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->body, bytes_.substr(10, 10));
    EXPECT_EQ(answer->header("Content-Range"), "bytes 10-19/100");
  }

  std::unique_ptr<FakeS3> server_;
  std::string bytes_;
};

TEST_F(FaultTest, ScriptedStatuses) {
  RawClient client(*server_);
  auto answer = get_with(client, {.kind = FaultKind::kStatus, .status = 503, .retry_after_s = 7});
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->header("Retry-After"), "7");
  EXPECT_EQ(s3::parse_error_document(answer->body).code, "SlowDown");
  answer = get_with(client, {.kind = FaultKind::kStatus, .status = 400, .s3_code = "ExpiredToken"});
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(s3::parse_error_document(answer->body).code, "ExpiredToken");
  answer = get_with(client, {.kind = FaultKind::kRedirect,
                             .status = 307,
                             .region = "eu-west-1",
                             .text = "http://elsewhere/x"});
  EXPECT_EQ(answer->status, 307);
  EXPECT_EQ(answer->header("Location"), "http://elsewhere/x");
  EXPECT_EQ(answer->header("x-amz-bucket-region"), "eu-west-1");
  expect_healthy(client);
  EXPECT_EQ(server_->faults().injected(), 3U);
}

TEST_F(FaultTest, WrongBytesInTheBody) {
  RawClient client(*server_);
  auto answer = get_with(client, {.kind = FaultKind::kFlipBit, .bytes = 3});
  ASSERT_EQ(answer->body.size(), 10U);
  std::string expected = bytes_.substr(10, 10);
  expected[3] = static_cast<char>(expected[3] ^ 8);
  EXPECT_EQ(answer->body, expected);
  answer = get_with(client, {.kind = FaultKind::kOtherObject});
  EXPECT_EQ(answer->status, 206);
  EXPECT_EQ(answer->body, std::string(10, 'b'));
  // The stored object is untouched.
  expect_healthy(client);
}

TEST_F(FaultTest, WrongLengths) {
  {
    RawClient client(*server_);
    const auto answer = get_with(client, {.kind = FaultKind::kShortBody, .bytes = 4});
    EXPECT_EQ(answer->header("Content-Length"), "6");
    EXPECT_EQ(answer->header("Content-Range"), "bytes 10-19/100");
    EXPECT_EQ(answer->body, bytes_.substr(10, 6));
    const auto longer = get_with(client, {.kind = FaultKind::kOverlongBody, .bytes = 4});
    EXPECT_EQ(longer->header("Content-Length"), "14");
    EXPECT_EQ(longer->body.size(), 14U);
    expect_healthy(client);
  }
  {
    RawClient client(*server_, kShortPatience);
    const auto answer = get_with(client, {.kind = FaultKind::kTrailingBytes, .bytes = 3});
    EXPECT_EQ(answer->header("Content-Length"), "10");
    EXPECT_EQ(answer->body, bytes_.substr(10, 10));
    EXPECT_EQ(client.rest(), "xxx");
  }
  {
    RawClient client(*server_);
    const auto answer = get_with(client, {.kind = FaultKind::kTruncateBody, .bytes = 4});
    EXPECT_EQ(answer->header("Content-Length"), "10");
    EXPECT_EQ(answer->body, bytes_.substr(10, 4));
    EXPECT_EQ(client.last_error(), 0);  // an orderly end
  }
}

TEST_F(FaultTest, EndsOfConnections) {
  {
    RawClient client(*server_);
    const auto answer = get_with(client, {.kind = FaultKind::kReset, .bytes = 4});
    // What was sent before a RST may be lost.
    if (answer) {
      EXPECT_LE(answer->body.size(), 4U);
    }
    EXPECT_EQ(client.last_error(), ECONNRESET);
  }
  for (const FaultKind kind : {FaultKind::kResetUnapplied, FaultKind::kCloseUnanswered}) {
    RawClient client(*server_);
    expect_healthy(client);
    EXPECT_FALSE(get_with(client, {.kind = kind}).has_value());
    EXPECT_EQ(client.last_error(), kind == FaultKind::kResetUnapplied ? ECONNRESET : 0);
  }
  {
    RawClient client(*server_);
    EXPECT_EQ(get_with(client, {.kind = FaultKind::kCloseAfter})->header("Connection"), "close");
    EXPECT_FALSE(client.exchange("GET", "/test-bucket/a").has_value());
  }
  {
    RawClient client(*server_);
    EXPECT_FALSE(get_with(client, {.kind = FaultKind::kGarbage}).has_value());
  }
  RawClient client(*server_);
  expect_healthy(client);
}

TEST_F(FaultTest, WritesAreAppliedOrNotAsTheKindSays) {
  const auto put = [&](Fault fault, std::string_view key) {
    server_->faults().clear();
    fault.times = 1;
    server_->faults().add(std::move(fault));
    RawClient client(*server_);
    return client.exchange("PUT", "/test-bucket/" + std::string(key), {}, {}, "abc").has_value();
  };
  EXPECT_FALSE(put({.kind = FaultKind::kResetUnapplied}, "w1"));
  EXPECT_EQ(server_->objects().find("test-bucket", "w1"), nullptr);
  EXPECT_FALSE(put({.kind = FaultKind::kResetInRequest, .bytes = 1}, "w2"));
  EXPECT_EQ(server_->objects().find("test-bucket", "w2"), nullptr);
  EXPECT_TRUE(put({.kind = FaultKind::kStatus, .status = 500}, "w3"));
  EXPECT_EQ(server_->objects().find("test-bucket", "w3"), nullptr);
  static_cast<void>(put({.kind = FaultKind::kReset}, "w4"));
  EXPECT_NE(server_->objects().find("test-bucket", "w4"), nullptr);
}

TEST_F(FaultTest, WrongHeads) {
  RawClient client(*server_);
  auto answer = get_with(client, {.kind = FaultKind::kIgnoreRange});
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body.size(), 100U);
  EXPECT_EQ(answer->header("Content-Range"), "<none>");
  answer = get_with(client, {.kind = FaultKind::kRangeAs200});
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->header("Content-Range"), "bytes 10-19/100");
  answer = get_with(client, {.kind = FaultKind::kBadContentRange});
  EXPECT_EQ(answer->header("Content-Range"), "bytes 11-20/101");
  answer = get_with(client, {.kind = FaultKind::kBadContentRange, .text = "bytes nonsense"});
  EXPECT_EQ(answer->header("Content-Range"), "bytes nonsense");
  answer = get_with(client, {.kind = FaultKind::kNoContentRange});
  EXPECT_EQ(answer->status, 206);
  EXPECT_EQ(answer->header("Content-Range"), "<none>");
  answer = get_with(client, {.kind = FaultKind::kNoEtag});
  EXPECT_EQ(answer->header("ETag"), "<none>");
  answer = get_with(client, {.kind = FaultKind::kOtherEtag});
  EXPECT_EQ(answer->header("ETag"), "\"not-the-etag\"");
  expect_healthy(client);
}

TEST_F(FaultTest, ChunkedTransferCoding) {
  RawClient client(*server_, kShortPatience);
  const auto answer = get_with(client, {.kind = FaultKind::kChunked, .bytes = 4});
  EXPECT_EQ(answer->header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(answer->header("Content-Length"), "<none>");
  EXPECT_EQ(answer->body, "4\r\n" + bytes_.substr(10, 4) + "\r\n4\r\n" + bytes_.substr(14, 4) +
                              "\r\n2\r\n" + bytes_.substr(18, 2) + "\r\n0\r\n\r\n");
}

TEST_F(FaultTest, DelaysAndStalls) {
  using std::chrono::milliseconds;
  const auto timed = [&](Fault fault, std::size_t body_bytes, milliseconds patience) {
    RawClient client(*server_, patience);
    const auto start = std::chrono::steady_clock::now();
    const auto answer = get_with(client, std::move(fault));
    EXPECT_EQ(answer ? answer->body.size() : SIZE_MAX, body_bytes);
    return std::chrono::steady_clock::now() - start;
  };
  EXPECT_GE(timed({.kind = FaultKind::kDelay, .delay = milliseconds(40)}, 10, kLongPatience),
            milliseconds(40));
  EXPECT_GE(timed({.kind = FaultKind::kSlowBody, .bytes = 4, .delay = milliseconds(20)}, 10,
                  kLongPatience),
            milliseconds(40));
  // The client's own timeout ends these.
  timed({.kind = FaultKind::kStallAfterHead}, 0, kShortPatience);
  timed({.kind = FaultKind::kStallInBody, .bytes = 4}, 4, kShortPatience);
  timed({.kind = FaultKind::kStallUnanswered}, SIZE_MAX, kShortPatience);
}

// ---------------------------------------------------------------- the plan

TEST(FaultPlan, HitsWhatItsRuleSays) {
  FaultPlan plan;
  plan.add(
      {.kind = FaultKind::kStatus, .method = "GET", .key_contains = "x/", .first = 2, .times = 2});
  const auto hit = [&](std::string_view method, std::string_view key) {
    return !plan.take(method, key).empty();
  };
  EXPECT_FALSE(hit("PUT", "b/x/1"));
  EXPECT_FALSE(hit("GET", "b/y/1"));
  EXPECT_FALSE(hit("GET", "b/x/1"));
  EXPECT_TRUE(hit("GET", "b/x/1"));
  EXPECT_TRUE(hit("GET", "b/x/2"));
  EXPECT_FALSE(hit("GET", "b/x/2"));
  EXPECT_EQ(plan.injected(FaultKind::kStatus), 2U);
  EXPECT_EQ(plan.injected(FaultKind::kDelay), 0U);
}

TEST(FaultPlan, ProbabilityIsRepeatableAndAboutRight) {
  const auto hits = [](std::uint64_t seed) {
    FaultPlan plan(seed);
    plan.add({.kind = FaultKind::kReset, .probability = 0.25});
    std::string out;
    for (int i = 0; i < 10'000; ++i) out += plan.take("GET", "k").empty() ? '.' : 'x';
    return out;
  };
  EXPECT_EQ(hits(1), hits(1));
  EXPECT_NE(hits(1), hits(2));
  EXPECT_NEAR(static_cast<double>(std::ranges::count(hits(3), 'x')), 2500, 200);
}

TEST(FaultPlan, ReadsJson) {
  const auto faults = parse_faults(
      R"([{"kind":"status","status":503,"s3_code":"SlowDown","method":"GET","key_contains":"k",
           "first":3,"times":2,"probability":0.5,"retry_after_s":1},
          {"kind":"slow_body","bytes":1024,"delay_ms":1.5}])");
  ASSERT_TRUE(faults.has_value()) << faults.error().to_string();
  ASSERT_EQ(faults->size(), 2U);
  EXPECT_EQ((*faults)[0].kind, FaultKind::kStatus);
  EXPECT_EQ((*faults)[0].first, 3U);
  EXPECT_EQ((*faults)[0].retry_after_s, 1);
  EXPECT_EQ((*faults)[1].delay, std::chrono::microseconds(1500));
  for (const char* text : {"", "{}", "[{}]", R"([{"kind":"nonsense"}])",
                           R"([{"kind":"delay","oops":1}])", R"([{"kind":"delay","bytes":"x"}])"}) {
    EXPECT_FALSE(parse_faults(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace objectcache::fake_s3
