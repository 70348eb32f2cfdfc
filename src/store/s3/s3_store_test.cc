// What the store does beside reading: writes, listings, deletes, and everything that holds for all
// requests (regions, clocks, credentials, breakers, rates).

#include "store/s3/s3_store.h"

#include <gtest/gtest.h>

#include "digest/hex.h"
#include "digest/md5.h"
#include "digest/sha256.h"
#include "s3/http_date.h"
#include "store/s3/testing/fake_s3_world.h"

namespace objectcache::store_s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::GetOutcome;
using store::PutMode;
using store::PutOutcome;
using Kind = FakeTreatment::Kind;

FakeTreatment of_kind(Kind kind) {
  FakeTreatment out;
  out.kind = kind;
  return out;
}
bool is_probe(const FakeS3World::Seen& seen) {
  return seen.request.target.find("objectcache-probe") != std::string::npos;
}
/// Requests that are not part of the probe of conditional PUT.
std::vector<std::string> methods(const FakeS3World& world) {
  std::vector<std::string> out;
  for (const auto& seen : world.seen) {
    if (!is_probe(seen)) out.push_back(seen.request.method);
  }
  return out;
}
/// Treats the first requests that are no probe as listed, the others well.
auto script(std::vector<FakeTreatment> rows) {
  return [rows = std::move(rows), n = std::size_t{0}](const FakeS3World::Seen& seen,
                                                      std::size_t) mutable {
    if (is_probe(seen) || n >= rows.size()) return FakeTreatment{};
    return rows[n++];
  };
}

template <class T>
struct Waited {
  std::optional<Result<T>> result;
  int completions = 0;
  auto done() {
    return [this](Result<T> r) {
      ++completions;
      result = std::move(r);
    };
  }
};

using Methods = std::vector<std::string>;

// ---------------------------------------------------------------- PUT

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
    world.treat = script({canned(503, "SlowDown")});
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
  world.treat = script({canned(409, "ConditionalRequestConflict")});
  const auto put = world.put_now("a", "one");
  ASSERT_TRUE(put) << put.error().to_string();
  EXPECT_EQ(put->outcome, PutOutcome::kCreated);
  EXPECT_EQ(methods(world), (Methods{"PUT", "PUT"}));
}

TEST(Put, ErrorsNameActionKeyAndCause) {
  FakeS3World world;
  world.treat = script({canned(507, "InsufficientStorage")});
  const auto put = world.put_now("a", "one");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kOutOfSpace);
  EXPECT_EQ(put.error().action, "PUT");
  EXPECT_EQ(put.error().key, "s3://bkt/a");
  EXPECT_EQ(
      world.s3().stats(world.loop.now()).errors[static_cast<std::size_t>(ErrorCode::kOutOfSpace)],
      1U);
}

// ---------------------------------------------------------------- HEAD, LIST, DELETE

Waited<std::optional<store::ObjectInfo>> head(FakeS3World& world, const std::string& key) {
  Waited<std::optional<store::ObjectInfo>> waited;
  world.store().head(world.loop, {key}, world.loop.now() + seconds(5), waited.done());
  world.loop.run_to_idle();
  EXPECT_EQ(waited.completions, 1);
  return waited;
}

TEST(Head, TellsSizeAndVersion) {
  FakeS3World world;
  world.put("a", "12345");
  const auto waited = head(world, "a");
  ASSERT_TRUE(*waited.result) << waited.result->error().to_string();
  ASSERT_TRUE(**waited.result);
  EXPECT_EQ((**waited.result)->size_bytes, 5U);
  EXPECT_EQ((**waited.result)->version.text, world.objects["a"].etag);
}

TEST(Head, AMissAsksOnceWhetherTheBucketIsThere) {
  FakeS3World world;
  for (int i = 0; i < 3; ++i) {
    const auto waited = head(world, "no");
    ASSERT_TRUE(*waited.result);
    EXPECT_FALSE(**waited.result);
  }
  EXPECT_EQ(world.seen.size(), 4U);
  EXPECT_EQ(world.seen[1].request.target, "/bkt");
}

TEST(Head, AMissingBucketIsNotAMiss) {
  FakeS3World world;
  world.treat = [](const FakeS3World::Seen&, std::size_t) { return canned(404, ""); };
  const auto waited = head(world, "no");
  ASSERT_FALSE(*waited.result);
  EXPECT_EQ(waited.result->error().code, ErrorCode::kNotFound);
}

TEST(Remove, TakesAwayAndSucceedsOnNothing) {
  FakeS3World world;
  world.put("a", "x");
  for (int i = 0; i < 2; ++i) {
    Waited<void> waited;
    world.store().remove(world.loop, {"a"}, world.loop.now() + seconds(5), waited.done());
    world.loop.run_to_idle();
    ASSERT_EQ(waited.completions, 1);
    EXPECT_TRUE(*waited.result);
  }
  EXPECT_TRUE(world.objects.empty());
  world.treat = [](const FakeS3World::Seen&, std::size_t) { return canned(404, "NoSuchBucket"); };
  Waited<void> waited;
  world.store().remove(world.loop, {"a"}, world.loop.now() + seconds(5), waited.done());
  world.loop.run_to_idle();
  EXPECT_FALSE(*waited.result);
}

TEST(RemoveMany, OneRequestOrSinglesWhereThereIsNone) {
  for (const bool known : {true, false}) {
    FakeS3World world;
    world.knows_delete_many = known;
    std::vector<store::ObjectKey> keys;
    for (int i = 0; i < 30; ++i) {
      keys.push_back({"k" + std::to_string(i)});
      world.put(keys.back().text, "x");
    }
    world.put("stays", "x");
    for (int round = 0; round < 2; ++round) {
      world.seen.clear();
      Waited<std::vector<store::RemoveFailure>> waited;
      world.store().remove_many(world.loop, keys, world.loop.now() + seconds(5), waited.done());
      world.loop.run_to_idle();
      ASSERT_EQ(waited.completions, 1);
      ASSERT_TRUE(*waited.result) << waited.result->error().to_string();
      EXPECT_TRUE((*waited.result)->empty());
      EXPECT_EQ(world.objects.size(), 1U);
      EXPECT_EQ(world.seen.size(), known ? 1U : 30U + (round == 0 ? 1 : 0));
    }
    EXPECT_LE(world.live_max, 8U);
  }
}

TEST(RemoveMany, NamesWhatCouldNotBeDeleted) {
  FakeS3World world;
  FakeTreatment treatment;
  treatment.kind = Kind::kCanned;
  treatment.status = 200;
  treatment.body =
      "<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
      "<Error><Key>b</Key><Code>NoSuchKey</Code></Error></DeleteResult>";
  world.treat = script({treatment});
  Waited<std::vector<store::RemoveFailure>> waited;
  world.store().remove_many(world.loop, {{"a"}, {"b"}, {"c"}}, world.loop.now() + seconds(5),
                            waited.done());
  world.loop.run_to_idle();
  ASSERT_TRUE(*waited.result);
  ASSERT_EQ((*waited.result)->size(), 1U);
  EXPECT_EQ((**waited.result)[0].key.text, "a");
  EXPECT_EQ((**waited.result)[0].error.code, ErrorCode::kPermissionDenied);
  EXPECT_NE(world.seen[0].header("content-md5"), "");
}

TEST(RemoveMany, CancelOfSingles) {
  for (int us = 0; us < 9000; us += 333) {
    FakeS3World world;
    world.knows_delete_many = false;
    std::vector<store::ObjectKey> keys;
    for (int i = 0; i < 30; ++i) keys.push_back({"k" + std::to_string(i)});
    Waited<std::vector<store::RemoveFailure>> waited;
    const auto handle =
        world.store().remove_many(world.loop, keys, world.loop.now() + seconds(5), waited.done());
    world.loop.run_for(std::chrono::microseconds(us));
    handle->cancel();
    world.loop.run_for(milliseconds(1));
    ASSERT_EQ(waited.completions, 1) << us;
    EXPECT_EQ(world.live, 0U);
  }
}

std::vector<std::string> list_all(FakeS3World& world, store::ListRequest request) {
  std::vector<std::string> out;
  for (;;) {
    Waited<store::ListPage> waited;
    request.deadline = world.loop.now() + seconds(5);
    world.store().list(world.loop, request, waited.done());
    world.loop.run_to_idle();
    EXPECT_EQ(waited.completions, 1);
    if (!waited.result || !*waited.result) return {"failed"};
    for (const auto& entry : (*waited.result)->entries) out.push_back(entry.key.text);
    if ((*waited.result)->next_start_after.empty()) return out;
    request.start_after = (*waited.result)->next_start_after;
  }
}

TEST(List, PagesAndStripsThePrefixOfTheStore) {
  S3Options options = FakeS3World::plain_options(1);
  options.prefix = "team/kv";
  FakeS3World world(options);
  std::vector<std::string> names;
  for (int i = 100; i < 150; ++i) {
    names.push_back("a/" + std::to_string(i));
    world.put("team/kv/" + names.back(), "x");
  }
  world.put("team/kv2/a/1", "x");
  world.put("team/other", "x");
  for (const std::uint32_t max : {1U, 7U, 50U, 1000U}) {
    EXPECT_EQ(list_all(world, {.entries_max = max}), names);
    EXPECT_EQ(list_all(world, {.prefix = "a/10", .entries_max = max}).size(), 10U);
    EXPECT_EQ(list_all(world, {.start_after = "a/147", .entries_max = max}),
              (Methods{"a/148", "a/149"}));
  }
}

TEST(List, AListingThatDoesNotAdvanceIsAnError) {
  FakeS3World world;
  world.treat = [](const FakeS3World::Seen&, std::size_t) {
    FakeTreatment out = canned(200, "");
    out.body =
        "<ListBucketResult><IsTruncated>true</IsTruncated>"
        "<NextContinuationToken>x</NextContinuationToken></ListBucketResult>";
    return out;
  };
  Waited<store::ListPage> waited;
  world.store().list(world.loop, {.deadline = world.loop.now() + seconds(50)}, waited.done());
  world.loop.run_to_idle();
  ASSERT_FALSE(*waited.result);
  EXPECT_EQ(waited.result->error().code, ErrorCode::kUnavailable);
  EXPECT_LE(world.seen.size(), 1010U);
}

TEST(List, GarbageIsAnError) {
  FakeS3World world;
  world.treat = [](const FakeS3World::Seen&, std::size_t) {
    FakeTreatment out = canned(200, "");
    out.body = "<html>hello</html>";
    return out;
  };
  Waited<store::ListPage> waited;
  world.store().list(world.loop, {.deadline = world.loop.now() + seconds(5)}, waited.done());
  world.loop.run_to_idle();
  ASSERT_FALSE(*waited.result);
  EXPECT_EQ(waited.result->error().action, "LIST");
}

// ---------------------------------------------------------------- what holds for every request

TEST(Everywhere, KeysGetThePrefixOfTheStore) {
  S3Options options = FakeS3World::plain_options(1);
  options.prefix = "team/kv";
  FakeS3World world(options);
  ASSERT_TRUE(world.put_now("a", "one"));
  EXPECT_TRUE(world.objects.contains("team/kv/a"));
  std::string into(3, '?');
  ASSERT_TRUE(world.get("a", 0, into));
  EXPECT_EQ(into, "one");
}

TEST(Everywhere, ARegionThatTheStoreNamesIsAdoptedOnce) {
  FakeS3World world;
  world.put("a", "one");
  world.treat = [](const FakeS3World::Seen& seen, std::size_t) {
    if (seen.header("authorization").find("/eu-west-7/") != std::string::npos)
      return FakeTreatment{};
    return canned(400, "AuthorizationHeaderMalformed", {}, "<Region>eu-west-7</Region>");
  };
  std::string into(3, '?');
  ASSERT_TRUE(world.get("a", 0, into));
  EXPECT_EQ(world.seen.size(), 2U);
  ASSERT_TRUE(world.get("a", 0, into));
  EXPECT_EQ(world.seen.size(), 3U);
  EXPECT_EQ(world.s3().stats(world.loop.now()).region, "eu-west-7");
}

TEST(Everywhere, ARegionThatTheUserChoseStaysAndTheErrorNamesTheRightOne) {
  S3Options options = FakeS3World::plain_options(1);
  options.region = "us-east-9";
  options.region_is_explicit = true;
  FakeS3World world(options);
  world.treat = [](const FakeS3World::Seen&, std::size_t) {
    return canned(301, "PermanentRedirect", {{"x-amz-bucket-region", "eu-west-7"}});
  };
  std::string into(3, '?');
  const auto answer = world.get("a", 0, into);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(answer.error().message.find("region=eu-west-7"), std::string::npos);
  EXPECT_EQ(world.seen.size(), 1U);
}

TEST(Everywhere, RegionsThatPointAtEachOtherEnd) {
  FakeS3World world;
  world.treat = [](const FakeS3World::Seen& seen, std::size_t) {
    const bool east = seen.header("authorization").find("/east/") != std::string::npos;
    return canned(301, "PermanentRedirect", {{"x-amz-bucket-region", east ? "west" : "east"}});
  };
  std::string into(3, '?');
  EXPECT_FALSE(world.get("a", 0, into));
  EXPECT_LE(world.seen.size(), 2U);
}

TEST(Everywhere, AWrongClockIsLearnedFromTheAnswer) {
  FakeS3World world;
  world.put("a", "one");
  const auto server_now = world.wall->now() + std::chrono::hours(3);
  world.treat = [&](const FakeS3World::Seen& seen, std::size_t) {
    const auto date = s3::parse_amz_date(seen.header("x-amz-date"));
    if (date && std::chrono::abs(*date - server_now) < std::chrono::minutes(15))
      return FakeTreatment{};
    return canned(403, "RequestTimeTooSkewed", {{"Date", s3::format_http_date(server_now)}});
  };
  std::string into(3, '?');
  ASSERT_TRUE(world.get("a", 0, into));
  EXPECT_EQ(world.seen.size(), 2U);
  ASSERT_TRUE(world.get("a", 0, into));
  EXPECT_EQ(world.seen.size(), 3U);
  EXPECT_EQ(world.s3().stats(world.loop.now()).clock_offset_s, 3 * 3600);
}

TEST(Everywhere, AClockThatStaysWrongIsReported) {
  FakeS3World world;
  const auto server_now = world.wall->now() + std::chrono::hours(3);
  world.treat = [&](const FakeS3World::Seen&, std::size_t) {
    return canned(403, "RequestTimeTooSkewed", {{"Date", s3::format_http_date(server_now)}});
  };
  std::string into(3, '?');
  const auto answer = world.get("a", 0, into);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kPermissionDenied);
  EXPECT_NE(answer.error().message.find("10800 s"), std::string::npos) << answer.error().message;
  EXPECT_EQ(world.seen.size(), 2U);
}

TEST(Everywhere, AnonymousRequestsAreNotSigned) {
  S3Options options = FakeS3World::plain_options(1);
  options.anonymous = true;
  FakeS3World world(options);
  world.credentials = std::make_shared<FixedCredentials>(nullptr);
  world.put("a", "one");
  std::string into(3, '?');
  ASSERT_TRUE(world.get("a", 0, into));
  EXPECT_EQ(world.seen[0].header("authorization"), "");
}

/// Hands out key "1", "2"... each time it is asked.
std::shared_ptr<FetchedCredentials> numbered(FakeS3World& world, int& fetches, Duration takes,
                                             std::chrono::seconds lifetime, bool fails = false) {
  return std::make_shared<FetchedCredentials>(
      world.wall, [&world, &fetches, takes, lifetime, fails](EventLoop& loop, auto done) {
        ++fetches;
        loop.run_at(loop.now() + takes,
                    [&world, n = fetches, lifetime, fails, done = std::move(done)]() mutable {
                      if (fails) {
                        done(fail(ErrorCode::kUnavailable, "no metadata service"));
                        return;
                      }
                      done(s3::Credentials{.access_key_id = std::to_string(n),
                                           .secret_access_key = s3::Secret("s"),
                                           .session_token = s3::Secret("t" + std::to_string(n)),
                                           .expires_at = world.wall->now() + lifetime});
                    });
        return std::make_shared<int>(0);
      });
}

TEST(Everywhere, ExpiredCredentialsAreFetchedAnewOnce) {
  FakeS3World world;
  world.put("a", "one");
  int fetches = 0;
  world.credentials = numbered(world, fetches, milliseconds(5), std::chrono::hours(1));
  world.treat = [](const FakeS3World::Seen& seen, std::size_t) {
    if (seen.header("x-amz-security-token") == "t1") return canned(400, "ExpiredToken");
    return FakeTreatment{};
  };
  std::string into(3, '?');
  ASSERT_TRUE(world.get("a", 0, into));
  EXPECT_EQ(fetches, 2);
  EXPECT_EQ(world.seen.size(), 2U);
  world.treat = [](const FakeS3World::Seen&, std::size_t) { return canned(400, "ExpiredToken"); };
  const auto answer = world.get("a", 0, into);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(fetches, 3);
}

TEST(Everywhere, ManyRequestsWaitForOneFetchAndTheEndIsForeseen) {
  FakeS3World world;
  world.put("a", "one");
  int fetches = 0;
  world.credentials = numbered(world, fetches, milliseconds(50), std::chrono::hours(1));
  std::vector<Waited<std::optional<store::ObjectInfo>>> waited(50);
  for (auto& it : waited) {
    world.store().head(world.loop, {"a"}, world.loop.now() + seconds(5), it.done());
  }
  world.loop.run_to_idle();
  for (auto& it : waited) ASSERT_TRUE(it.result && *it.result);
  EXPECT_EQ(fetches, 1);
  // Four minutes before the end the old ones still serve, and new ones are fetched meanwhile.
  world.wall->advance(std::chrono::minutes(56));
  world.seen.clear();
  ASSERT_TRUE(*head(world, "a").result);
  EXPECT_NE(world.seen[0].header("authorization").find("Credential=1/"), std::string::npos);
  EXPECT_EQ(fetches, 2);
  ASSERT_TRUE(*head(world, "a").result);
  EXPECT_NE(world.seen[1].header("authorization").find("Credential=2/"), std::string::npos);
  EXPECT_EQ(fetches, 2);
}

TEST(Everywhere, CredentialsThatCannotBeHadFailTheRequestAndAreNotHammered) {
  FakeS3World world;
  int fetches = 0;
  world.credentials = numbered(world, fetches, milliseconds(50), std::chrono::hours(1), true);
  for (int i = 0; i < 20; ++i) {
    const auto waited = head(world, "a");
    ASSERT_FALSE(*waited.result);
    EXPECT_EQ(waited.result->error().message, "no metadata service");
  }
  EXPECT_EQ(fetches, 1);
  world.loop.run_for(seconds(2));
  static_cast<void>(head(world, "a"));
  EXPECT_EQ(fetches, 2);
  EXPECT_TRUE(world.seen.empty());
}

TEST(Everywhere, ADeadStoreFailsFastAndComesBack) {
  FakeS3World world;
  world.put("a", "one");
  bool dead = true;
  world.treat = [&](const FakeS3World::Seen&, std::size_t) {
    return dead ? of_kind(Kind::kRefuse) : FakeTreatment{};
  };
  std::string into(3, '?');
  std::optional<Error> error;
  for (int i = 0; i < 10; ++i) {
    const auto answer = world.get("a", 0, into);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    error = answer.error();
  }
  EXPECT_EQ(world.s3().stats(world.loop.now()).endpoints[0].breaker, BreakerState::kOpen);
  const std::size_t sent = world.seen.size();
  const TimePoint start = world.loop.now();
  const auto refused = world.get("a", 0, into);
  ASSERT_FALSE(refused);
  EXPECT_LE(world.loop.now() - start, milliseconds(1));
  EXPECT_EQ(world.seen.size(), sent);
  EXPECT_NE(refused.error().message.find("http://127.0.0.1:8001"), std::string::npos);
  EXPECT_NE(refused.error().message.find("tried again in"), std::string::npos);
  dead = false;
  world.loop.run_for(seconds(20));
  ASSERT_TRUE(world.get("a", 0, into));
  EXPECT_EQ(world.s3().stats(world.loop.now()).endpoints[0].breaker, BreakerState::kClosed);
}

TEST(Everywhere, OneDeadAddressOfSeveralIsLeftOut) {
  FakeS3World world(FakeS3World::plain_options(3));
  world.put("a", "one");
  world.treat = [](const FakeS3World::Seen& seen, std::size_t) {
    return seen.endpoint == 1 ? of_kind(Kind::kRefuse) : FakeTreatment{};
  };
  std::string into(3, '?');
  std::array<int, 3> tried{};
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(world.get("a", 0, into));
    world.loop.run_for(milliseconds(10));
  }
  for (const auto& seen : world.seen) ++tried[seen.endpoint];
  EXPECT_GT(tried[0], 80);
  EXPECT_GT(tried[2], 80);
  EXPECT_LT(tried[1], 40);
  EXPECT_NE(world.s3().stats(world.loop.now()).endpoints[1].breaker, BreakerState::kClosed);
}

TEST(Everywhere, ARequestRateHolds) {
  S3Options options = FakeS3World::plain_options(1);
  options.rate.requests_per_second_max = 100;
  FakeS3World world(options);
  world.put("a", "one");
  std::vector<Waited<std::optional<store::ObjectInfo>>> waited(300);
  for (auto& it : waited) {
    world.store().head(world.loop, {"a"}, world.loop.now() + seconds(2), it.done());
  }
  world.loop.run_to_idle();
  int good = 0;
  for (auto& it : waited) {
    ASSERT_EQ(it.completions, 1);
    if (*it.result) {
      ++good;
    } else {
      EXPECT_EQ(it.result->error().code, ErrorCode::kThrottled);
    }
  }
  EXPECT_NEAR(good, 200, 10);
  EXPECT_NEAR(static_cast<double>(world.seen.size()), 200, 10);
}

TEST(Everywhere, ASlowDownStormLowersTheRate) {
  FakeS3World world;
  world.put("a", "one");
  world.treat = [](const FakeS3World::Seen&, std::size_t) { return canned(503, "SlowDown"); };
  std::vector<Waited<std::optional<store::ObjectInfo>>> waited(200);
  for (auto& it : waited) {
    world.store().head(world.loop, {"a"}, world.loop.now() + seconds(2), it.done());
  }
  world.loop.run_for(seconds(3));
  for (auto& it : waited) {
    ASSERT_EQ(it.completions, 1);
    ASSERT_FALSE(*it.result);
    const ErrorCode code = it.result->error().code;
    EXPECT_TRUE(code == ErrorCode::kThrottled || code == ErrorCode::kDeadlineExceeded);
  }
  // Without backing off it would have been 1,200.
  EXPECT_LT(world.seen.size(), 700U);
  EXPECT_EQ(world.s3().stats(world.loop.now()).endpoints[0].breaker, BreakerState::kClosed);
}

TEST(Everywhere, BadOptionsAreRefused) {
  S3Options options = FakeS3World::plain_options(1);
  const auto refused = [](const S3Options& o) {
    const auto store = S3Store::create(o, {});
    return !store && store.error().code == ErrorCode::kInvalidArgument;
  };
  options.endpoints.clear();
  EXPECT_TRUE(refused(options));
  options = FakeS3World::plain_options(1);
  options.bucket = "No Bucket";
  EXPECT_TRUE(refused(options));
  options.bucket = "";
  EXPECT_TRUE(refused(options));
  options = FakeS3World::plain_options(1);
  options.prefix = "/a";
  EXPECT_TRUE(refused(options));
  options.prefix = "a/";
  EXPECT_TRUE(refused(options));
  options = FakeS3World::plain_options(1);
  options.connections = 0;
  EXPECT_TRUE(refused(options));
}

}  // namespace
}  // namespace objectcache::store_s3
