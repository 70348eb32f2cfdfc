// What holds for every request: regions, clocks, credentials, breakers, rates.

#include "store/s3/s3_store.h"

#include <array>

#include "s3/http_date.h"
#include "store/s3/testing/store_fixture.h"

namespace objectcache::store_s3 {
namespace {

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
  EXPECT_LT(world.seen.size(), 900U);
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
