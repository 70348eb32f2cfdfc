#include "store/s3/testing/get_fixture.h"

namespace objectcache::store_s3 {
namespace {

TEST_F(Get, ReadsTheRange) {
  expect_good(0, 1);
  expect_good(0, bytes.size());
  expect_good(12'345, 100'000);
  EXPECT_EQ(world.seen.back().header("range"), "bytes=12345-112344");
  EXPECT_NE(world.seen.back().header("authorization").find("Credential=AK/"), std::string::npos);
}

TEST_F(Get, MissingIsAValue) {
  std::string into(10, '?');
  const auto answer = world.get("no", 0, into);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->outcome, GetOutcome::kMissing);
  EXPECT_EQ(into, std::string(10, '?'));
}

TEST_F(Get, MissingBucketIsAnError) {
  world.treat = script({canned(404, "NoSuchBucket")});
  const Error error = expect_error(ErrorCode::kNotFound);
  EXPECT_EQ(error.s3_code, "NoSuchBucket");
  EXPECT_EQ(world.seen.size(), 1U);
}

TEST_F(Get, ForbiddenSaysThatTheKeyMayBeMissing) {
  world.treat = script({canned(403, "AccessDenied")});
  EXPECT_NE(expect_error(ErrorCode::kPermissionDenied).message.find("ListBucket"),
            std::string::npos);
  EXPECT_EQ(world.seen.size(), 1U);
}

TEST_F(Get, BeyondTheEndIsOutOfRange) {
  std::string into(10, '?');
  for (const std::uint64_t offset : {bytes.size() - 9, bytes.size(), bytes.size() + 1000}) {
    const auto answer = world.get("k", offset, into);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->outcome, GetOutcome::kOutOfRange) << offset;
  }
  EXPECT_EQ(into, std::string(10, '?'));
}

TEST_F(Get, Accepts200WithTheRightContentRange) {
  world.treat = script({tampered([](auto& head, auto&) { head.status = 200; })});
  expect_good(100, 1000);
}

TEST_F(Get, RefusesABare200) {
  world.treat = script({tampered([&](auto& head, auto& body) {
    head.status = 200;
    drop_header(head, "Content-Range");
    body = bytes;
    head.content_length = body.size();
  })});
  EXPECT_NE(expect_error(ErrorCode::kUnsupported).message.find("ignores the Range"),
            std::string::npos);
  EXPECT_EQ(world.seen.size(), 1U);
}

TEST_F(Get, RefusesABare200EvenOfTheRightLength) {
  world.treat = script({tampered([](auto& head, auto&) {
    head.status = 200;
    drop_header(head, "Content-Range");
  })});
  static_cast<void>(expect_error(ErrorCode::kUnsupported));
}

TEST_F(Get, AnswersThatContradictThemselvesAreTriedAgain) {
  const std::vector<std::function<void(http::ResponseHead&, std::string&)>> rows = {
      [](auto& head, auto&) { drop_header(head, "Content-Range"); },
      [](auto& head, auto&) { set_header(head, "Content-Range", "bytes 1-1000/300000"); },
      [](auto& head, auto&) { set_header(head, "Content-Range", "bytes 0-1000/300000"); },
      [](auto& head, auto&) { set_header(head, "Content-Range", "bytes 999-0/300000"); },
      [](auto& head, auto&) { set_header(head, "Content-Range", "pages 0-999/300000"); },
      [](auto& head, auto& body) {
        body += "x";
        head.content_length = body.size();
      },
      [](auto& head, auto& body) {
        body.pop_back();
        head.content_length = body.size();
      },
      [](auto&, auto& body) { body += "too long"; },
      [](auto&, auto& body) { body.resize(500); },
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    world.seen.clear();
    world.treat = script({tampered(rows[i])});
    expect_good(0, 1000);
    // What comes behind the last byte does no harm any more.
    EXPECT_EQ(world.seen.size(), i == 7 ? 1U : 2U) << i;
    // For ever: an error that says what is wrong, after a bounded number of attempts.
    world.treat = [&](const auto&, std::size_t) { return tampered(rows[i]); };
    if (i < 7) static_cast<void>(expect_error(ErrorCode::kUnavailable));
    EXPECT_LE(world.seen.size(), 10U) << i;
  }
}

TEST_F(Get, RefusesRecodedBodiesAndAnswersWithoutAVersion) {
  world.treat = script(
      {tampered([](auto& head, auto&) { head.headers.push_back({"Content-Encoding", "gzip"}); })});
  static_cast<void>(expect_error(ErrorCode::kUnsupported));
  world.seen.clear();
  world.treat = script({tampered([](auto& head, auto&) { drop_header(head, "ETag"); })});
  static_cast<void>(expect_error(ErrorCode::kUnsupported));
}

TEST_F(Get, ResumesBehindTheLastByteWithTheVersionPinned) {
  FakeTreatment reset;
  reset.kind = Kind::kReset;
  reset.body_bytes = 150'000;
  world.treat = script({reset});
  expect_good(1000, 200'000);
  ASSERT_EQ(world.seen.size(), 2U);
  EXPECT_EQ(world.seen[1].header("range"), "bytes=151000-200999");
  EXPECT_EQ(world.seen[1].header("if-match"), world.objects["k"].etag);
  EXPECT_EQ(world.seen[0].header("if-match"), "");
}

TEST_F(Get, AnObjectReplacedBetweenAttemptsIsAnotherVersion) {
  for (const bool server_knows_if_match : {true, false}) {
    world.put("k", bytes);
    world.seen.clear();
    world.honours_if_match = server_knows_if_match;
    FakeTreatment reset;
    reset.kind = Kind::kReset;
    reset.body_bytes = 500;
    world.treat = [&](const auto&, std::size_t n) {
      if (n == 0) return reset;
      world.put("k", pattern(300'000, 2));
      return FakeTreatment{};
    };
    EXPECT_EQ(outcome(), GetOutcome::kVersionChanged) << server_knows_if_match;
  }
}

TEST_F(Get, AnObjectShortenedOrDeletedBetweenAttempts) {
  FakeTreatment reset;
  reset.kind = Kind::kReset;
  reset.body_bytes = 500;
  world.honours_if_match = false;
  world.treat = [&](const auto&, std::size_t n) {
    if (n == 0) return reset;
    world.put("k", std::string(100, 'x'));
    return FakeTreatment{};
  };
  EXPECT_EQ(outcome(), GetOutcome::kVersionChanged);
  world.put("k", bytes);
  world.seen.clear();
  world.treat = [&](const auto&, std::size_t n) {
    if (n == 0) return reset;
    world.objects.clear();
    return FakeTreatment{};
  };
  EXPECT_EQ(outcome(), GetOutcome::kMissing);
}

TEST_F(Get, AskedForAnotherVersion) {
  for (const bool server_knows_if_match : {true, false}) {
    world.honours_if_match = server_knows_if_match;
    std::string into(10, '?');
    store::GetRequest request;
    request.key = {"k"};
    request.length = 10;
    request.destination = {std::as_writable_bytes(std::span(into))};
    request.version = store::ObjectVersion{"\"another\""};
    request.deadline = world.loop.now() + seconds(5);
    std::optional<GetOutcome> got;
    world.store().get(world.loop, std::move(request), [&](auto result) { got = result->outcome; });
    world.loop.run_to_idle();
    EXPECT_EQ(got, GetOutcome::kVersionChanged);
    EXPECT_EQ(into, std::string(10, '?'));
  }
}

TEST_F(Get, RetriesWhatMayPass) {
  FakeTreatment refuse;
  refuse.kind = Kind::kRefuse;
  FakeTreatment reset;
  reset.kind = Kind::kReset;
  FakeTreatment hang;
  hang.kind = Kind::kHang;
  for (const FakeTreatment& row :
       {refuse, reset, hang, canned(500, "InternalError"), canned(503, "SlowDown"), canned(503, ""),
        canned(502, ""), canned(504, ""), canned(429, ""), canned(408, "RequestTimeout")}) {
    world.seen.clear();
    world.treat = script({row});
    expect_good(0, 5000);
    EXPECT_EQ(world.seen.size(), 2U);
  }
  const S3Stats stats = world.s3().stats(world.loop.now());
  EXPECT_EQ(stats.retries, 10U);
  EXPECT_EQ(stats.throttled, 2U);
}

TEST_F(Get, DoesNotRetryWhatWillNotPass) {
  struct Row {
    FakeTreatment treatment;
    ErrorCode code;
  };
  for (const Row& row : {Row{canned(403, "AccessDenied"), ErrorCode::kPermissionDenied},
                         Row{canned(403, "SignatureDoesNotMatch"), ErrorCode::kPermissionDenied},
                         Row{canned(400, "InvalidRequest"), ErrorCode::kInvalidArgument},
                         Row{canned(501, "NotImplemented"), ErrorCode::kUnsupported}}) {
    world.seen.clear();
    world.treat = script({row.treatment});
    const Error error = expect_error(row.code);
    EXPECT_EQ(world.seen.size(), 1U);
    EXPECT_EQ(error.http_status, row.treatment.status);
  }
}

TEST_F(Get, HonoursRetryAfter) {
  world.treat = script({canned(503, "SlowDown", {{"Retry-After", "3"}})});
  const TimePoint start = world.loop.now();
  expect_good(0, 10);
  EXPECT_GE(world.loop.now() - start, seconds(3));
  EXPECT_LE(world.loop.now() - start, seconds(4));
}

TEST_F(Get, ARetryAfterBeyondTheDeadlineFailsAtOnce) {
  world.treat = [](const auto&, std::size_t) {
    return canned(503, "SlowDown", {{"Retry-After", "3000"}});
  };
  const TimePoint start = world.loop.now();
  const Error error = expect_error(ErrorCode::kThrottled);
  EXPECT_LT(world.loop.now() - start, seconds(1));
  EXPECT_EQ(error.s3_code, "SlowDown");
  EXPECT_NE(error.message.find("deadline"), std::string::npos) << error.message;
}

TEST_F(Get, GivesUpAfterTheAttemptsAndTellsTheCause) {
  world.treat = [](const auto&, std::size_t) { return canned(500, "InternalError"); };
  const Error error = expect_error(ErrorCode::kUnavailable);
  EXPECT_EQ(world.seen.size(), 6U);
  EXPECT_EQ(error.s3_code, "InternalError");
  EXPECT_EQ(error.request_id, "");
  EXPECT_NE(error.message.find("6 attempts"), std::string::npos) << error.message;
}

TEST_F(Get, AHangEndsAtTheDeadline) {
  FakeTreatment hang;
  hang.kind = Kind::kHang;
  for (const std::optional<std::uint64_t> at : {std::optional<std::uint64_t>(), {500}}) {
    hang.body_bytes = at;
    world.treat = [&](const auto&, std::size_t) { return hang; };
    std::string into(1000, '?');
    const TimePoint start = world.loop.now();
    const auto answer = world.get("k", 0, into, seconds(2));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
    EXPECT_GE(world.loop.now() - start, seconds(2));
    EXPECT_LE(world.loop.now() - start, seconds(2) + milliseconds(2));
  }
}

TEST_F(Get, ADeadlineInThePast) {
  std::string into(10, '?');
  const auto answer = world.get("k", 0, into, seconds(-1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(world.seen.empty());
}

TEST_F(Get, RefusesBadRequestsLater) {
  std::string into(10, '?');
  store::GetRequest request;
  request.key = {"/k"};
  request.length = 10;
  request.destination = {std::as_writable_bytes(std::span(into))};
  request.deadline = world.loop.now() + seconds(1);
  std::optional<ErrorCode> code;
  const auto handle = world.store().get(world.loop, std::move(request),
                                        [&](auto result) { code = result.error().code; });
  EXPECT_FALSE(code);
  ASSERT_TRUE(handle);
  handle->cancel();
  world.loop.run_ready();
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(world.seen.empty());
}

// ---------------------------------------------------------------- cancel, grants

TEST_F(Get, CancelAtEachMomentEndsOnceAndThenTouchesNothing) {
  FakeTreatment reset;
  reset.kind = Kind::kReset;
  reset.body_bytes = 50'000;
  int cancelled = 0;
  for (int us = 0; us < 8000; us += 37) {
    world.seen.clear();
    world.treat = script({reset, canned(503, "SlowDown")});
    Running get(world, 200'000);
    world.loop.run_for(std::chrono::microseconds(us));
    const bool ended = get.completions == 1;
    get.handle->cancel();
    get.handle->cancel();
    EXPECT_EQ(get.completions, ended ? 1 : 0);
    world.loop.run_for(milliseconds(1));
    ASSERT_EQ(get.completions, 1) << us;
    if (!*get.result) {
      EXPECT_EQ(get.result->error().code, ErrorCode::kCancelled);
      ++cancelled;
    }
    // The engine uses the memory again at once.
    std::ranges::fill(get.into, '!');
    world.loop.run_for(seconds(1));
    EXPECT_EQ(get.into, std::string(200'000, '!'));
    EXPECT_EQ(get.completions, 1);
    EXPECT_EQ(world.live, 0U);
    get.handle->cancel();
  }
  EXPECT_GT(cancelled, 50);
}

TEST_F(Get, ReadsOnlyWhatIsGranted) {
  Running get(world, 100'000, 10'000);
  world.loop.run_for(seconds(5));
  EXPECT_EQ(get.delivered, 10'000U);
  EXPECT_EQ(get.completions, 0);
  get.handle->grant(5'000);
  world.loop.run_for(seconds(5));
  EXPECT_EQ(get.delivered, 15'000U);
  get.handle->grant(UINT64_MAX);
  get.handle->grant(UINT64_MAX);
  world.loop.run_for(seconds(1));
  ASSERT_EQ(get.completions, 1);
  EXPECT_TRUE(*get.result);
  EXPECT_EQ(get.into, bytes.substr(0, 100'000));
}

TEST_F(Get, GrantsHoldAcrossARetry) {
  FakeTreatment reset;
  reset.kind = Kind::kReset;
  reset.body_bytes = 8'000;
  world.treat = script({reset});
  Running get(world, 100'000, 10'000);
  world.loop.run_for(seconds(2));
  EXPECT_EQ(get.delivered, 10'000U);
  EXPECT_EQ(world.seen.size(), 2U);
  get.handle->grant(90'000);
  world.loop.run_for(seconds(1));
  ASSERT_EQ(get.completions, 1);
  EXPECT_EQ(get.into, bytes.substr(0, 100'000));
}

TEST_F(Get, AGrantOfNothingHoldsStillUntilTheDeadline) {
  Running get(world, 100'000, 0);
  world.loop.run_for(seconds(29));
  EXPECT_EQ(get.completions, 0);
  world.loop.run_for(seconds(2));
  ASSERT_EQ(get.completions, 1);
  EXPECT_EQ(get.result->error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(world.seen.size(), 1U);
}

}  // namespace
}  // namespace objectcache::store_s3
