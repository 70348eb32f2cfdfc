// What the S3 store makes of each thing that can go wrong between it and a server, on real sockets.

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "integration/fake_s3_store.h"
#include "store/s3/pool_connector.h"
#include "store/s3/s3_store.h"

namespace objectcache::integration {
namespace {

using fake_s3::Fault;
using fake_s3::FaultKind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::GetOutcome;
using store::conformance::Bytes;
using store::conformance::GetOptions;
using store::conformance::make_bytes;

constexpr std::size_t kSize = 300'000;

struct Stage {
  explicit Stage(fake_s3::FakeS3Options options = {}, const std::string& parameters = {})
      : both(std::move(options), "&stall_timeout=300ms" + parameters), h(both, conformance) {
    h.create("k", bytes);
    both.server().clear_requests();
  }
  Error get_error(Duration timeout = seconds(20)) {
    auto reading = h.start_get("k", {.length = kSize, .timeout = timeout});
    auto answer = h.finish(reading->call);
    EXPECT_FALSE(answer) << "outcome " << static_cast<int>(answer->outcome);
    if (answer) return {};
    EXPECT_EQ(answer.error().action, "GET");
    EXPECT_EQ(answer.error().key, "s3://test-bucket/some/prefix/" + h.prefix() + "k");
    return answer.error();
  }
  store::ConformanceOptions conformance;
  FakeServerAndStore both;
  store::conformance::Harness h;
  const Bytes bytes = make_bytes(kSize, 7);
};

double seconds_of(const std::function<void()>& task) {
  const auto start = std::chrono::steady_clock::now();
  task();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// ---------------------------------------------------------------- answers that break

TEST(S3Fault, WhatBreaksOnceIsMendedByARetry) {
  const Fault faults[] = {
      {.kind = FaultKind::kStatus, .status = 500, .s3_code = "InternalError"},
      {.kind = FaultKind::kStatus, .status = 503, .s3_code = "SlowDown"},
      {.kind = FaultKind::kStatus, .status = 502},
      {.kind = FaultKind::kCloseUnanswered},
      {.kind = FaultKind::kResetUnapplied},
      {.kind = FaultKind::kGarbage},
      {.kind = FaultKind::kStallUnanswered},
      {.kind = FaultKind::kStallAfterHead},
      {.kind = FaultKind::kStallInBody, .bytes = 100'000},
      {.kind = FaultKind::kReset, .bytes = 100'000},
      {.kind = FaultKind::kTruncateBody, .bytes = 100'000},
      {.kind = FaultKind::kShortBody, .bytes = 1000},
      {.kind = FaultKind::kOverlongBody, .bytes = 1000},
      {.kind = FaultKind::kBadContentRange},
      {.kind = FaultKind::kNoContentRange},
  };
  for (const Fault& row : faults) {
    SCOPED_TRACE(fake_s3::fault_kind_name(row.kind));
    Stage s;
    Fault fault = row;
    fault.method = "GET";
    fault.times = 1;
    s.both.fault(fault);
    s.h.expect_get("k", s.bytes);
    EXPECT_EQ(s.both.server().faults().injected(), 1U);
    EXPECT_GE(s.both.server().requests().size(), 2U);
    // And the connection is fit for the next.
    s.h.expect_get("k", s.bytes);
  }
}

TEST(S3Fault, ARetryGoesOnBehindTheLastByte) {
  Stage s;
  s.both.fault({.kind = FaultKind::kTruncateBody, .method = "GET", .times = 1, .bytes = 100'000});
  s.h.expect_get("k", s.bytes);
  const auto requests = s.both.server().requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].header("range"), "bytes=100000-299999");
  EXPECT_TRUE(requests[1].header("if-match"));
}

TEST(S3Fault, HarmlessOddities) {
  for (const FaultKind kind : {FaultKind::kRangeAs200, FaultKind::kTrailingBytes,
                               FaultKind::kCloseAfter, FaultKind::kSlowBody}) {
    SCOPED_TRACE(fake_s3::fault_kind_name(kind));
    Stage s;
    s.both.fault({.kind = kind, .method = "GET", .bytes = 70'000, .delay = milliseconds(20)});
    for (int i = 0; i < 3; ++i) s.h.expect_get("k", s.bytes);
  }
}

TEST(S3Fault, WhatStaysBrokenIsAnErrorThatSaysSo) {
  struct Row {
    Fault fault;
    ErrorCode code;
    std::string part;
  };
  const Row rows[] = {
      {{.kind = FaultKind::kIgnoreRange}, ErrorCode::kUnsupported, "ignores the Range header"},
      {{.kind = FaultKind::kNoEtag}, ErrorCode::kUnsupported, "no ETag"},
      {{.kind = FaultKind::kBadContentRange}, ErrorCode::kUnavailable, "contradicts itself"},
      {{.kind = FaultKind::kGarbage}, ErrorCode::kUnavailable, "broken"},
      {{.kind = FaultKind::kStatus, .status = 403, .s3_code = "AccessDenied"},
       ErrorCode::kPermissionDenied,
       "s3:ListBucket"},
      {{.kind = FaultKind::kStatus, .status = 404, .s3_code = "NoSuchBucket"},
       ErrorCode::kNotFound,
       "bucket"},
      {{.kind = FaultKind::kRedirect, .status = 307, .text = "http://elsewhere.example/"},
       ErrorCode::kUnavailable,
       "elsewhere"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fake_s3::fault_kind_name(row.fault.kind));
    Stage s({}, "&retries=2");
    Fault fault = row.fault;
    fault.method = "GET";
    s.both.fault(fault);
    // A whole object under Range is seen only if the range is not the whole object's.
    auto reading = s.h.start_get("k", {.offset = 1, .length = 1000});
    const auto answer = s.h.finish(reading->call);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, row.code) << answer.error().to_string();
    EXPECT_NE(answer.error().message.find(row.part), std::string::npos)
        << answer.error().to_string();
  }
}

TEST(S3Fault, AnswersOfAnotherVersionAreNeverMixedIn) {
  Stage s;
  s.both.fault({.kind = FaultKind::kTruncateBody, .method = "GET", .times = 1, .bytes = 100'000});
  s.both.fault({.kind = FaultKind::kOtherEtag, .method = "GET", .first = 2});
  auto reading = s.h.start_get("k", {.length = kSize});
  const auto answer = s.h.finish(reading->call);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->outcome, GetOutcome::kVersionChanged);
}

// ---------------------------------------------------------------- time

TEST(S3Fault, SilenceEndsAtTheDeadline) {
  for (const FaultKind kind :
       {FaultKind::kStallUnanswered, FaultKind::kStallAfterHead, FaultKind::kStallInBody}) {
    SCOPED_TRACE(fake_s3::fault_kind_name(kind));
    Stage s;
    s.both.fault({.kind = kind, .method = "GET", .bytes = 50'000});
    Error error;
    const double took = seconds_of([&] { error = s.get_error(milliseconds(700)); });
    EXPECT_EQ(error.code, ErrorCode::kDeadlineExceeded) << error.to_string();
    EXPECT_GE(took, 0.69);
    EXPECT_LT(took, 2.0);
  }
}

TEST(S3Fault, RetryAfterIsHonouredOrRefusedAtOnce) {
  Stage s;
  s.both.fault({.kind = FaultKind::kStatus,
                .method = "GET",
                .times = 1,
                .status = 503,
                .s3_code = "SlowDown",
                .retry_after_s = 1});
  EXPECT_GE(seconds_of([&] { s.h.expect_get("k", s.bytes); }), 1.0);
  s.both.fault({.kind = FaultKind::kStatus,
                .method = "GET",
                .status = 503,
                .s3_code = "SlowDown",
                .retry_after_s = 60});
  Error error;
  EXPECT_LT(seconds_of([&] { error = s.get_error(seconds(10)); }), 5.0);
  EXPECT_EQ(error.code, ErrorCode::kThrottled);
  EXPECT_EQ(error.s3_code, "SlowDown");
}

TEST(S3Fault, ASlowDownStormIsRiddenOut) {
  Stage s;
  s.both.fault({.kind = FaultKind::kStatus,
                .method = "GET",
                .probability = 0.5,
                .status = 503,
                .s3_code = "SlowDown"});
  for (int i = 0; i < 10; ++i) s.h.expect_get("k", s.bytes);
  EXPECT_GT(s.both.stats().throttled, 0U);
  EXPECT_EQ(s.both.stats().endpoints[0].breaker, store_s3::BreakerState::kClosed);
}

TEST(S3Fault, ALateAnswerOfAHedgedRequestTouchesNothing) {
  // A first byte is late from 10 ms on at the earliest; this server takes two.
  fake_s3::FakeS3Options options;
  options.latency = milliseconds(2);
  Stage s(options);
  for (int i = 0; i < 130; ++i) s.h.expect_get("k", s.bytes);
  s.h.settle(seconds(1));  // The link is not taken for a full one.
  s.both.fault({.kind = FaultKind::kDelay, .method = "GET", .times = 1, .delay = seconds(1)});
  auto reading = s.h.start_get("k", {.length = kSize});
  double took = seconds_of([&] { ASSERT_TRUE(s.h.finish(reading->call)); });
  EXPECT_LT(took, 0.9);
  EXPECT_TRUE(reading->memory == s.bytes);
  EXPECT_EQ(s.both.stats().hedges_won, 1U);
  std::ranges::fill(reading->memory, std::byte{'!'});
  s.h.settle(milliseconds(1200));
  EXPECT_TRUE(reading->memory == Bytes(kSize, std::byte{'!'}));
}

// ---------------------------------------------------------------- cancel

TEST(S3Fault, CancelAtEachStage) {
  Stage s;
  s.both.fault({.kind = FaultKind::kDelay, .method = "GET", .delay = milliseconds(5)});
  s.both.fault(
      {.kind = FaultKind::kSlowBody, .method = "GET", .bytes = 50'000, .delay = milliseconds(4)});
  s.both.fault(
      {.kind = FaultKind::kTruncateBody, .method = "GET", .probability = 0.3, .bytes = 99});
  int cancelled = 0;
  for (int ms = 0; ms < 40; ms += 2) {
    auto reading = s.h.start_get("k", {.length = kSize});
    if (ms > 0) s.h.settle(milliseconds(ms));
    s.h.driver().run([&] { reading->call->operation->cancel(); });
    const auto answer = s.h.finish(reading->call);
    if (!answer) {
      EXPECT_EQ(answer.error().code, ErrorCode::kCancelled) << answer.error().to_string();
      ++cancelled;
    }
    std::ranges::fill(reading->memory, std::byte{'!'});
    s.h.settle(milliseconds(30));
    EXPECT_TRUE(reading->memory == Bytes(kSize, std::byte{'!'})) << ms;
  }
  EXPECT_GT(cancelled, 10);
}

// ---------------------------------------------------------------- who and where

TEST(S3Fault, AMissIsAValueAndAMissingBucketIsNot) {
  fake_s3::FakeS3Options options;
  options.buckets = {"test-bucket"};
  Stage s(options);
  s.h.expect_get_outcome("no", GetOutcome::kMissing, {.length = 10});
  EXPECT_FALSE(s.h.head("no"));

  S3TestStore elsewhere("s3://other-bucket/p?endpoint=" + s.both.server().endpoint(),
                        FakeServerAndStore::environment_of(options));
  store::conformance::Harness h(elsewhere, s.conformance);
  const auto get = h.finish(h.start_get("k", {.length = 10})->call);
  ASSERT_FALSE(get);
  EXPECT_EQ(get.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(get.error().s3_code, "NoSuchBucket");
  const auto head = h.finish(h.start_head("k"));
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().code, ErrorCode::kNotFound);
  const auto put = h.put("k", make_bytes(10, 1));
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kNotFound) << put.error().to_string();
  const auto list = h.list({});
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kNotFound);
}

TEST(S3Fault, WrongKeys) {
  Stage s;
  for (const auto& [key, secret, code] :
       {std::tuple("AKFAKES3TEST", "wrong", "SignatureDoesNotMatch"),
        std::tuple("NOBODY", "wrong", "InvalidAccessKeyId")}) {
    S3TestStore other("s3://test-bucket/p?endpoint=" + s.both.server().endpoint(),
                      environment_with(key, secret));
    store::conformance::Harness h(other, s.conformance);
    const auto get = h.finish(h.start_get("k", {.length = 10})->call);
    ASSERT_FALSE(get);
    EXPECT_EQ(get.error().code, ErrorCode::kPermissionDenied);
    EXPECT_EQ(get.error().s3_code, code);
    EXPECT_EQ(get.error().to_string().find("wrong"), std::string::npos);
  }
}

TEST(S3Fault, AnotherRegionIsAdoptedUnlessTheUserSaidOtherwise) {
  fake_s3::FakeS3Options options;
  options.region = "eu-west-7";
  Stage s(options);
  s.h.expect_get("k", s.bytes);
  EXPECT_EQ(s.both.stats().region, "eu-west-7");

  FakeServerAndStore insisting(options, "&region=us-west-1");
  store::conformance::Harness h(insisting, s.conformance);
  const auto get = h.finish(h.start_get("k", {.length = 10})->call);
  ASSERT_FALSE(get);
  EXPECT_NE(get.error().message.find("eu-west-7"), std::string::npos) << get.error().to_string();
  EXPECT_NE(get.error().message.find("us-west-1"), std::string::npos) << get.error().to_string();
}

TEST(S3Fault, AWrongClockIsLearned) {
  for (const auto offset : {std::chrono::hours(-7), std::chrono::hours(30)}) {
    fake_s3::FakeS3Options options;
    options.clock_offset = offset;
    Stage s(options);
    s.h.expect_get("k", s.bytes);
    EXPECT_NEAR(static_cast<double>(s.both.stats().clock_offset_s),
                static_cast<double>(std::chrono::seconds(offset).count()), 2.0);
  }
}

TEST(S3Fault, ExpiredCredentialsAreReplacedInTheMiddleOfWork) {
  const auto now = std::chrono::system_clock::now();
  const auto credentials = [&](int n, bool expired) {
    return s3::Credentials{.access_key_id = "KEY" + std::to_string(n),
                           .secret_access_key = s3::Secret("secret"),
                           .session_token = s3::Secret("token" + std::to_string(n)),
                           .expires_at = now + std::chrono::hours(expired ? -1 : 1)};
  };
  fake_s3::FakeS3Options options;
  options.credentials = {credentials(1, true), credentials(2, false)};
  const auto server = FakeServerAndStore::start(options);

  auto reactor = http::Reactor::start();
  ASSERT_TRUE(reactor);
  const auto wall = std::make_shared<SystemWallClock>();
  int fetches = 0;
  const auto source = std::make_shared<store_s3::FetchedCredentials>(
      wall, [&](EventLoop& loop, auto done) -> std::shared_ptr<void> {
        ++fetches;
        auto given = credentials(fetches, false);  // The client believes that the first are good.
        loop.post([done = std::move(done), given]() mutable { done(given); });
        return std::make_shared<int>(0);
      });
  store_s3::S3Options s3_options;
  s3_options.bucket = "test-bucket";
  s3_options.endpoints = {*s3::parse_endpoint(server->endpoint())};
  auto store = store_s3::S3Store::create(
      s3_options, {.wall = wall,
                   .connector = std::make_shared<store_s3::PoolConnector>(""),
                   .credentials = source,
                   .seed = 1});
  ASSERT_TRUE(store);
  std::optional<Result<store::PutAnswer>> put;
  store::ForeignLoopDriver driver(**reactor, nullptr);
  const Bytes body = make_bytes(100, 1);
  driver.run([&] {
    (*store)->put(driver.loop(),
                  {.key = {"k"}, .body = {body}, .deadline = driver.loop().now() + seconds(10)},
                  [&](auto result) { put = std::move(result); });
  });
  ASSERT_TRUE(driver.until([&] { return put.has_value(); }, seconds(10)));
  EXPECT_TRUE(*put) << put->error().to_string();
  EXPECT_EQ(fetches, 2);
  store->reset();
}

// ---------------------------------------------------------------- the server itself

TEST(S3Fault, DeadAtStartFailsFastAndComesBackWhenTheServerDoes) {
  fake_s3::FakeS3Options options;
  auto server = FakeServerAndStore::start(options);
  options.port = server->port();
  server.reset();  // Nobody listens there now.
  S3TestStore client("s3://test-bucket/p?endpoint=http://127.0.0.1:" + std::to_string(options.port),
                     FakeServerAndStore::environment_of(options));
  const store::ConformanceOptions conformance;
  store::conformance::Harness h(client, conformance);
  std::optional<Error> error;
  for (int i = 0; i < 20; ++i) {
    const auto get = h.finish(h.start_get("k", {.length = 10, .timeout = seconds(5)})->call);
    ASSERT_FALSE(get);
    EXPECT_EQ(get.error().code, ErrorCode::kUnavailable) << get.error().to_string();
    error = get.error();
    if (error->message.find("tried again") != std::string::npos) break;
  }
  EXPECT_NE(error->message.find("127.0.0.1:" + std::to_string(options.port)), std::string::npos);
  EXPECT_NE(error->message.find("tried again"), std::string::npos) << error->message;
  EXPECT_LT(seconds_of([&] { EXPECT_FALSE(h.finish(h.start_get("k", {.length = 10})->call)); }),
            0.3);

  server = FakeServerAndStore::start(options);
  bool back = false;
  for (int i = 0; i < 100 && !back; ++i) {
    const auto get = h.finish(h.start_get("k", {.length = 10, .timeout = seconds(2)})->call);
    back = get && get->outcome == GetOutcome::kMissing;
    if (!back) h.settle(milliseconds(100));
  }
  EXPECT_TRUE(back);
  EXPECT_EQ(client.s3().stats(h.loop().now()).endpoints[0].breaker,
            store_s3::BreakerState::kClosed);
}

TEST(S3Fault, DyingInTheMiddleOfABodyIsAnError) {
  Stage s;
  s.both.fault(
      {.kind = FaultKind::kSlowBody, .method = "GET", .bytes = 10'000, .delay = milliseconds(10)});
  auto reading = s.h.start_get("k", {.length = kSize, .timeout = seconds(10)});
  s.h.settle(milliseconds(60));
  s.both.server().stop();
  const auto answer = s.h.finish(reading->call);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable) << answer.error().to_string();
  ASSERT_FALSE(reading->progress.empty());
  const auto had = static_cast<std::ptrdiff_t>(reading->reached());
  EXPECT_TRUE(std::equal(reading->memory.begin(), reading->memory.begin() + had, s.bytes.begin()));
}

TEST(S3Fault, DroppedConnectionsAreReplaced) {
  Stage s;
  for (int i = 0; i < 5; ++i) {
    s.h.expect_get("k", s.bytes);
    s.both.server().drop_connections();
  }
  s.h.expect_get("k", s.bytes);
}

TEST(S3Fault, OneDeadEndpointOfTwoIsLeftOut) {
  fake_s3::FakeS3Options options;
  auto dead = FakeServerAndStore::start(options);
  const std::string gone = dead->endpoint();
  dead.reset();
  const auto alive = FakeServerAndStore::start(options);
  S3TestStore client("s3://test-bucket/p?endpoint=" + gone + "," + alive->endpoint(),
                     FakeServerAndStore::environment_of(options));
  const store::ConformanceOptions conformance;
  store::conformance::Harness h(client, conformance);
  const Bytes bytes = make_bytes(1000, 1);
  h.create("k", bytes);
  for (int i = 0; i < 50; ++i) h.expect_get("k", bytes);
}

TEST(S3Fault, ALostAnswerToAPutIsNoSecondWrite) {
  fake_s3::FakeS3Options options;
  options.etags = fake_s3::EtagMode::kMd5;
  Stage s(options);
  s.both.fault({.kind = FaultKind::kReset, .method = "PUT", .times = 1});
  const auto put = s.h.put("p", s.bytes);
  ASSERT_TRUE(put) << put.error().to_string();
  EXPECT_EQ(put->outcome, store::PutOutcome::kCreated);
  EXPECT_FALSE(put->version.text.empty());
  s.h.expect_get("p", s.bytes);
  // Broken off in the middle of the request's body, nothing is there.
  s.both.fault({.kind = FaultKind::kResetInRequest, .method = "PUT", .times = 1, .bytes = 1000});
  const auto second = s.h.put("q", s.bytes);
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(second->outcome, store::PutOutcome::kCreated);
  s.h.expect_get("q", s.bytes);
}

}  // namespace
}  // namespace objectcache::integration
