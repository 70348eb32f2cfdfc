#include "digest/hex.h"
#include "digest/md5.h"
#include "digest/sha256.h"
#include "store/s3/testing/store_fixture.h"

namespace objectcache::store_s3 {
namespace {

TEST(Put, ProbesOnceAndThenTrustsWhatItFound) {
  FakeS3World world;
  EXPECT_FALSE(world.store().traits().put_if_absent_is_atomic);
  const auto first = world.put_now("a", "one");
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(first->outcome, PutOutcome::kCreated);
  EXPECT_EQ(first->version.text, world.objects["a"].etag);
  EXPECT_TRUE(world.store().traits().put_if_absent_is_atomic);
  EXPECT_EQ(world.seen.size(), 4U);  // Two probe PUTs, a DELETE, the PUT.
  EXPECT_EQ(world.objects.size(), 1U);
  const auto second = world.put_now("a", "two");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->outcome, PutOutcome::kAlreadyExists);
  EXPECT_EQ(world.objects["a"].bytes, "one");
  EXPECT_EQ(methods(world), (Methods{"PUT", "PUT"}));
}

TEST(Put, LooksFirstWhereTheServerIgnoresTheCondition) {
  FakeS3World world;
  world.honours_if_none_match = false;
  ASSERT_TRUE(world.put_now("a", "one"));
  EXPECT_FALSE(world.store().traits().put_if_absent_is_atomic);
  const auto second = world.put_now("a", "two");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->outcome, PutOutcome::kAlreadyExists);
  EXPECT_EQ(world.objects["a"].bytes, "one");
  EXPECT_EQ(methods(world), (Methods{"HEAD", "PUT", "HEAD"}));
}

TEST(Put, LooksFirstWhereTheConditionIsNotImplemented) {
  FakeS3World world;
  world.treat = [](const FakeS3World::Seen& seen, std::size_t) {
    if (!seen.header("if-none-match").empty()) return canned(501, "NotImplemented");
    return FakeTreatment{};
  };
  const auto put = world.put_now("a", "one");
  ASSERT_TRUE(put) << put.error().to_string();
  EXPECT_EQ(put->outcome, PutOutcome::kCreated);
  EXPECT_EQ(methods(world), (Methods{"HEAD", "PUT"}));
}

TEST(Put, ACredentialThatMayNotProbeUsesTheConditionWithoutTrustingIt) {
  FakeS3World world;
  world.treat = [](const FakeS3World::Seen& seen, std::size_t) {
    return is_probe(seen) ? canned(403, "AccessDenied") : FakeTreatment{};
  };
  const auto put = world.put_now("a", "one");
  ASSERT_TRUE(put) << put.error().to_string();
  EXPECT_EQ(methods(world), (Methods{"HEAD", "PUT"}));
  EXPECT_EQ(world.seen.back().header("if-none-match"), "*");
  EXPECT_FALSE(world.store().traits().put_if_absent_is_atomic);
}

TEST(Put, ReplaceAsksNothing) {
  FakeS3World world;
  world.put("a", "old");
  const auto put = world.put_now("a", "new", PutMode::kReplace);
  ASSERT_TRUE(put);
  EXPECT_EQ(put->outcome, PutOutcome::kCreated);
  EXPECT_EQ(world.objects["a"].bytes, "new");
  EXPECT_EQ(world.seen.size(), 1U);
  EXPECT_EQ(world.seen[0].header("if-none-match"), "");
}

TEST(Put, SignsTheHashOfTheBodyWithoutTlsAndNotWithIt) {
  struct Row {
    SignPayload sign;
    bool tls;
    bool hashed;
  };
  const std::string body(3 << 20, 'x');
  const std::string hash = digest::hex(digest::sha256(digest::bytes_of(body)));
  for (const Row row :
       {Row{SignPayload::kAuto, false, true}, Row{SignPayload::kAuto, true, false},
        Row{SignPayload::kAlways, true, true}, Row{SignPayload::kNever, false, false}}) {
    S3Options options = FakeS3World::plain_options(1);
    options.sign_payload = row.sign;
    options.endpoints[0].tls = row.tls;
    FakeS3World world(options);
    ASSERT_TRUE(world.put_now("a", body, PutMode::kReplace));
    EXPECT_EQ(world.seen[0].header("x-amz-content-sha256"), row.hashed ? hash : "UNSIGNED-PAYLOAD");
  }
}

TEST(Put, ManyAtOnceProbeOnce) {
  FakeS3World world;
  std::vector<Waited<store::PutAnswer>> waited(20);
  const std::string body = "body";
  for (std::size_t i = 0; i < waited.size(); ++i) {
    store::PutRequest request;
    request.key = {"k" + std::to_string(i)};
    request.body = {std::as_bytes(std::span(body))};
    request.deadline = world.loop.now() + seconds(5);
    world.store().put(world.loop, std::move(request), waited[i].done());
  }
  world.loop.run_to_idle();
  for (const auto& it : waited) {
    ASSERT_EQ(it.completions, 1);
    ASSERT_TRUE(*it.result);
    EXPECT_EQ((*it.result)->outcome, PutOutcome::kCreated);
  }
  EXPECT_EQ(world.seen.size(), 20U + 3U);
}

TEST(Put, TheOthersGoOnWhenTheProberIsCancelled) {
  FakeS3World world;
  const std::string body = "body";
  Waited<store::PutAnswer> first;
  Waited<store::PutAnswer> second;
  store::PutRequest request;
  request.body = {std::as_bytes(std::span(body))};
  request.deadline = world.loop.now() + seconds(5);
  request.key = {"a"};
  auto copy = request;
  const auto handle = world.store().put(world.loop, std::move(request), first.done());
  copy.key = {"b"};
  world.store().put(world.loop, std::move(copy), second.done());
  world.loop.run_for(std::chrono::microseconds(1500));
  handle->cancel();
  world.loop.run_to_idle();
  ASSERT_EQ(first.completions, 1);
  EXPECT_EQ(first.result->error().code, ErrorCode::kCancelled);
  ASSERT_EQ(second.completions, 1);
  ASSERT_TRUE(*second.result) << second.result->error().to_string();
  EXPECT_TRUE(world.objects.contains("b"));
  EXPECT_FALSE(world.objects.contains("a"));
}

TEST(Put, CancelAtEachMomentEndsOnce) {
  const std::string body(3 << 20, 'x');
  for (int us = 0; us < 8000; us += 101) {
    FakeS3World world;
    world.treat = script_but_probes({canned(503, "SlowDown")});
    Waited<store::PutAnswer> waited;
    store::PutRequest request;
    request.key = {"a"};
    request.body = {std::as_bytes(std::span(body))};
    request.deadline = world.loop.now() + seconds(5);
    const auto handle = world.store().put(world.loop, std::move(request), waited.done());
    if (us > 0) world.loop.run_for(std::chrono::microseconds(us));
    handle->cancel();
    world.loop.run_for(milliseconds(1));
    ASSERT_EQ(waited.completions, 1) << us;
    world.loop.run_to_idle();
    EXPECT_EQ(waited.completions, 1);
    EXPECT_EQ(world.live, 0U);
  }
}

TEST(Put, ALostAnswerOfOurOwnIsCreated) {
  FakeS3World world;
  ASSERT_TRUE(world.put_now("warm", "x"));
  world.seen.clear();
  const std::string body = "the body";
  world.treat = [&](const FakeS3World::Seen&, std::size_t n) {
    if (n == 0) return of_kind(Kind::kDoneNoAnswer);
    // The fake's ETags are numbers; S3's are the MD5.
    world.objects["a"].etag = "\"" + digest::hex(digest::md5(digest::bytes_of(body))) + "\"";
    return FakeTreatment{};
  };
  const auto put = world.put_now("a", body);
  ASSERT_TRUE(put) << put.error().to_string();
  EXPECT_EQ(put->outcome, PutOutcome::kCreated);
  EXPECT_EQ(put->version.text, world.objects["a"].etag);
  EXPECT_EQ(methods(world), (Methods{"PUT", "PUT", "HEAD"}));
}

TEST(Put, ALostAnswerAndAnotherWriterIsAlreadyExists) {
  FakeS3World world;
  ASSERT_TRUE(world.put_now("warm", "x"));
  world.seen.clear();
  world.treat = [&](const FakeS3World::Seen&, std::size_t n) {
    if (n != 0) return FakeTreatment{};
    world.put("a", "another's");
    return of_kind(Kind::kReset);
  };
  const auto put = world.put_now("a", "ours");
  ASSERT_TRUE(put);
  EXPECT_EQ(put->outcome, PutOutcome::kAlreadyExists);
  EXPECT_EQ(world.objects["a"].bytes, "another's");
}

TEST(Put, AWriteRaceIsTriedAgain) {
  FakeS3World world;
  world.treat = script_but_probes({canned(409, "ConditionalRequestConflict")});
  const auto put = world.put_now("a", "one");
  ASSERT_TRUE(put) << put.error().to_string();
  EXPECT_EQ(put->outcome, PutOutcome::kCreated);
  EXPECT_EQ(methods(world), (Methods{"PUT", "PUT"}));
}

TEST(Put, ErrorsNameActionKeyAndCause) {
  FakeS3World world;
  world.treat = script_but_probes({canned(507, "InsufficientStorage")});
  const auto put = world.put_now("a", "one");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kOutOfSpace);
  EXPECT_EQ(put.error().action, "PUT");
  EXPECT_EQ(put.error().key, "s3://bkt/a");
  EXPECT_EQ(
      world.s3().stats(world.loop.now()).errors[static_cast<std::size_t>(ErrorCode::kOutOfSpace)],
      1U);
}

}  // namespace
}  // namespace objectcache::store_s3
