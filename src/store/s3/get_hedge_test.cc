#include "store/s3/testing/get_fixture.h"

namespace objectcache::store_s3 {
namespace {

class Hedge : public Get {
 protected:
  Hedge() {
    // 101 quick answers: the quantile is known, and there is a budget.
    world.put("big", pattern(1'000'000));
    std::string into(1'000'000, '?');
    for (int i = 0; i < 101; ++i) {
      static_cast<void>(world.get("big", 0, into));
      world.loop.run_for(milliseconds(400));
    }
    world.seen.clear();
  }
  FakeTreatment slow(Duration first_byte) {
    FakeTreatment out;
    out.first_byte = first_byte;
    return out;
  }
  S3Stats stats() { return world.s3().stats(world.loop.now()); }
};

TEST_F(Hedge, ASlowFirstByteIsOvertaken) {
  world.treat = script({slow(seconds(9))});
  const TimePoint start = world.loop.now();
  Running get(world, 100'000);
  world.loop.run_for(seconds(1));
  ASSERT_EQ(get.completions, 1);
  ASSERT_TRUE(*get.result) << get.result->error().to_string();
  EXPECT_EQ(get.into, bytes.substr(0, 100'000));
  EXPECT_EQ(world.seen.size(), 2U);
  EXPECT_GE(world.seen[1].at - start, milliseconds(10));
  EXPECT_EQ(stats().hedges, 1U);
  EXPECT_EQ(stats().hedges_won, 1U);
  EXPECT_EQ(stats().hedged_bytes, 100'000U);
  EXPECT_EQ(world.s3().figures()->hedges, 1U);
  EXPECT_EQ(world.s3().figures()->hedge_bytes, 100'000U);
}

TEST_F(Hedge, TheFirstRequestMayStillWin) {
  world.treat = script({slow(milliseconds(12)), slow(milliseconds(500))});
  expect_good(0, 100'000);
  EXPECT_EQ(world.seen.size(), 2U);
  EXPECT_EQ(stats().hedges, 1U);
  EXPECT_EQ(stats().hedges_won, 0U);
}

TEST_F(Hedge, AFailedHedgeDoesNoHarm) {
  for (const FakeTreatment& hedge : {canned(500, "InternalError"), canned(403, "AccessDenied")}) {
    world.seen.clear();
    world.treat = script({slow(milliseconds(300)), hedge});
    expect_good(0, 100'000);
    EXPECT_EQ(world.seen.size(), 2U);
  }
}

TEST_F(Hedge, ItsBytesComeEvenIfTheFirstRequestFails) {
  FakeTreatment reset;
  reset.kind = Kind::kReset;
  reset.first_byte = milliseconds(50);
  world.treat = script({reset, slow(milliseconds(100))});
  expect_good(0, 100'000);
  EXPECT_EQ(world.seen.size(), 2U);
  EXPECT_EQ(stats().hedges_won, 1U);
}

TEST_F(Hedge, BrokenOffInTheMiddleARetryGoesOnFromThere) {
  FakeTreatment reset;
  reset.kind = Kind::kReset;
  reset.body_bytes = 40'000;
  for (const Duration latency :
       {Duration(milliseconds(0)), Duration(milliseconds(1)), Duration(milliseconds(700))}) {
    world.seen.clear();
    world.cancel_latency = latency;
    world.treat = script({slow(seconds(9)), reset});
    expect_good(0, 100'000);
    ASSERT_EQ(world.seen.size(), 3U);
    EXPECT_EQ(world.seen[2].header("range"), "bytes=40000-99999");
    EXPECT_EQ(world.seen[2].header("if-match"), world.objects["k"].etag);
  }
}

TEST_F(Hedge, AFirstRequestThatClosesLateDelaysTheCopy) {
  world.cancel_latency = seconds(2);
  world.treat = script({slow(seconds(9))});
  Running get(world, 100'000);
  world.loop.run_for(seconds(1));
  EXPECT_EQ(get.delivered, 0U);  // Until the first is closed nothing is final.
  world.loop.run_for(seconds(2));
  ASSERT_EQ(get.completions, 1);
  EXPECT_EQ(get.into, bytes.substr(0, 100'000));
}

TEST_F(Hedge, NotForLongReadsNorWithoutBudget) {
  world.put("huge", pattern(9 << 20));
  world.treat = script({slow(seconds(1))});
  std::string into(9 << 20, '?');
  ASSERT_TRUE(world.get("huge", 0, into));
  EXPECT_EQ(world.seen.size(), 1U);
  // 2 % of some 110 MB allow two reads of 900 kB, and no third.
  world.put("k2", pattern(900'000));
  std::size_t requests = 0;
  for (int i = 0; i < 6; ++i) {
    world.seen.clear();
    world.loop.run_for(seconds(2));
    world.treat = script({slow(milliseconds(400))});
    std::string part(900'000, '?');
    ASSERT_TRUE(world.get("k2", 0, part));
    requests += world.seen.size();
  }
  EXPECT_EQ(requests, 6U + 2U);
}

TEST_F(Hedge, CancelAtEachMoment) {
  for (int us = 0; us < 30'000; us += 211) {
    world.seen.clear();
    world.treat = script({slow(milliseconds(18)), slow(milliseconds(5))});
    Running get(world, 10'000);
    world.loop.run_for(std::chrono::microseconds(us));
    get.handle->cancel();
    world.loop.run_for(milliseconds(1));
    ASSERT_EQ(get.completions, 1) << us;
    std::ranges::fill(get.into, '!');
    world.loop.run_for(seconds(1));
    EXPECT_EQ(get.into, std::string(10'000, '!'));
    EXPECT_EQ(world.live, 0U);
  }
}

}  // namespace
}  // namespace objectcache::store_s3
