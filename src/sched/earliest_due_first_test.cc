#include "sched/earliest_due_first.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <vector>

namespace objectcache::sched {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

const TimePoint kNow{std::chrono::hours(1)};

StreamId must_add(EarliestDueFirst& admission, Priority priority = Priority::kInteractive) {
  return admission
      .add({.priority = priority, .start = kNow, .layer_bytes = {}, .windows = {}}, kNow)
      .value();
}

void want(EarliestDueFirst& admission, StreamId stream, std::uint64_t bytes, int due_ms,
          DemandKind kind = DemandKind::kStart) {
  admission.demand(stream, kind, {.bytes = bytes, .due = kNow + milliseconds(due_ms)}, kNow);
}

std::vector<StreamId> granted(EarliestDueFirst& admission) {
  std::vector<StreamId> order;
  while (auto grant = admission.next(kNow).grant) order.push_back(grant->stream);
  return order;
}

TEST(EarliestDueFirst, GrantsInOrderOfDues) {
  EarliestDueFirst admission({});
  const auto a = must_add(admission);
  const auto b = must_add(admission);
  const auto c = must_add(admission);
  want(admission, a, 10, 30);
  want(admission, b, 10, 10);
  want(admission, c, 10, 20);
  EXPECT_THAT(granted(admission), ElementsAre(b, c, a));
}

TEST(EarliestDueFirst, TakesTurnsAmongEquals) {
  EarliestDueFirst admission({.requests_in_flight_max = 1});
  const auto a = must_add(admission);
  const auto b = must_add(admission);
  std::vector<StreamId> order;
  want(admission, a, 1, 0);
  want(admission, b, 1, 0);
  for (int i = 0; i < 6; ++i) {
    const auto grant = admission.next(kNow).grant;
    ASSERT_TRUE(grant);
    order.push_back(grant->stream);
    admission.account(grant->stream, {.received_bytes = 1, .requests_ended = 1}, kNow);
    want(admission, grant->stream, 1, 0);
  }
  EXPECT_THAT(order, ElementsAre(a, b, a, b, a, b));
}

TEST(EarliestDueFirst, AChangedSizeKeepsItsTurnAndANewDueDoesNot) {
  EarliestDueFirst admission({});
  const auto a = must_add(admission);
  const auto b = must_add(admission);
  want(admission, a, 1, 5);
  want(admission, b, 1, 5);
  want(admission, a, 7, 5);
  EXPECT_EQ(admission.next(kNow).grant->bytes, 7u);
  want(admission, a, 1, 4);
  EXPECT_THAT(granted(admission), ElementsAre(a, b));
}

TEST(EarliestDueFirst, AWithdrawnDemandIsNotGranted) {
  EarliestDueFirst admission({});
  const auto a = must_add(admission);
  want(admission, a, 1, 5);
  want(admission, a, 0, 5);
  EXPECT_FALSE(admission.next(kNow).grant);
  EXPECT_EQ(admission.usage().demands, 0u);
}

TEST(EarliestDueFirst, HeldReadsGoOnWhenNoRequestIsFree) {
  EarliestDueFirst admission({.requests_in_flight_max = 1});
  const auto a = must_add(admission);
  const auto b = must_add(admission);
  want(admission, a, 100, 0);
  ASSERT_EQ(admission.next(kNow).grant->stream, a);
  want(admission, b, 100, 0);
  want(admission, a, 50, 9, DemandKind::kContinue);
  const auto grant = admission.next(kNow).grant;
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->stream, a);
  EXPECT_EQ(grant->kind, DemandKind::kContinue);
  EXPECT_FALSE(admission.next(kNow).grant);
  admission.account(a, {.received_bytes = 150, .requests_ended = 1}, kNow);
  EXPECT_EQ(admission.next(kNow).grant->stream, b);
}

TEST(EarliestDueFirst, CutsGrantsToTheBytesLeft) {
  EarliestDueFirst admission({.bytes_in_flight_max = 1000, .grant_bytes_min = 100});
  const auto a = must_add(admission);
  want(admission, a, 5000, 0);
  EXPECT_EQ(admission.next(kNow).grant->bytes, 1000u);
  want(admission, a, 4000, 0, DemandKind::kContinue);
  EXPECT_FALSE(admission.next(kNow).grant);
  admission.account(a, {.received_bytes = 99}, kNow);
  EXPECT_FALSE(admission.next(kNow).grant) << "a rest below grant_bytes_min is not worth a grant";
  admission.account(a, {.received_bytes = 1}, kNow);
  EXPECT_EQ(admission.next(kNow).grant->bytes, 100u);
}

TEST(EarliestDueFirst, ALimitBelowTheSmallestGrantStillMovesOn) {
  EarliestDueFirst admission({.bytes_in_flight_max = 10, .grant_bytes_min = 100});
  const auto a = must_add(admission);
  want(admission, a, 50, 0);
  EXPECT_EQ(admission.next(kNow).grant->bytes, 10u);
}

TEST(EarliestDueFirst, RefusesMoreStreamsThanItsLimit) {
  EarliestDueFirst admission({.streams_max = 2});
  const auto a = must_add(admission);
  must_add(admission);
  const auto third = admission.add({.layer_bytes = {}, .windows = {}}, kNow);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kLimitExceeded);
  admission.remove(a, kNow);
  const auto again = must_add(admission);
  EXPECT_EQ(slot_of(again), slot_of(a));
  EXPECT_NE(again, a);
}

TEST(EarliestDueFirst, RemovalReleasesWhatWasGranted) {
  EarliestDueFirst admission({.requests_in_flight_max = 1, .bytes_in_flight_max = 100});
  const auto a = must_add(admission);
  const auto b = must_add(admission);
  want(admission, a, 100, 0);
  ASSERT_TRUE(admission.next(kNow).grant);
  want(admission, b, 100, 0);
  want(admission, a, 100, 0, DemandKind::kContinue);
  EXPECT_FALSE(admission.next(kNow).grant);
  admission.remove(a, kNow);
  EXPECT_THAT(granted(admission), ElementsAre(b));
  EXPECT_EQ(admission.usage().bytes_in_flight, 100u);
  EXPECT_EQ(admission.usage().streams, 1u);
}

TEST(EarliestDueFirst, LowerClassesCountAsDueLater) {
  EarliestDueFirst admission({});
  const auto background = must_add(admission, Priority::kBackground);
  const auto normal = must_add(admission, Priority::kNormal);
  const auto urgent = must_add(admission, Priority::kInteractive);
  want(admission, background, 1, 0);
  want(admission, normal, 1, 0);
  want(admission, urgent, 1, 40);
  EXPECT_THAT(granted(admission), ElementsAre(urgent, normal, background));
  // But not for ever: what waits in the background is due some day.
  want(admission, background, 1, 0);
  want(admission, urgent, 1, 2001);
  EXPECT_THAT(granted(admission), ElementsAre(background, urgent));
}

// A slow and obvious model: lists, searched from end to end.
struct Model {
  struct Wanted {
    std::uint64_t bytes = 0;
    int due_ms = 0;
  };
  std::map<StreamId, std::array<Wanted, 2>> demands;
  std::map<StreamId, std::uint64_t> bytes;
  std::map<StreamId, std::uint32_t> requests;
  [[nodiscard]] std::uint64_t total_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [id, n] : bytes) sum += n;
    return sum;
  }
  [[nodiscard]] std::uint32_t total_requests() const {
    std::uint32_t sum = 0;
    for (const auto& [id, n] : requests) sum += n;
    return sum;
  }
};

class RandomRuns : public testing::TestWithParam<unsigned> {};

TEST_P(RandomRuns, KeepLimitsAndOrderAndLeaveNothingUndone) {
  std::mt19937_64 random(GetParam());
  const auto below = [&](std::uint64_t end) { return random() % end; };
  const EarliestDueFirst::Options options{
      .streams_max = 1 + static_cast<std::uint32_t>(below(40)),
      .requests_in_flight_max = 1 + static_cast<std::uint32_t>(below(12)),
      .bytes_in_flight_max = 1 + below(5000),
      .grant_bytes_min = 1 + below(200)};
  EarliestDueFirst admission(options);
  Model model;
  for (int step = 0; step < 4000; ++step) {
    const auto pick = [&] { return std::next(model.demands.begin(), below(model.demands.size())); };
    const auto action = below(10);
    if (action == 0 || model.demands.empty()) {
      const auto added = admission.add(
          {.priority = Priority::kInteractive, .layer_bytes = {}, .windows = {}}, kNow);
      ASSERT_EQ(added.has_value(), model.demands.size() < options.streams_max);
      if (added) model.demands[*added] = {};
    } else if (action == 1 && below(4) == 0) {
      const auto id = pick()->first;
      admission.remove(id, kNow);
      model.demands.erase(id);
      model.bytes.erase(id);
      model.requests.erase(id);
    } else if (action < 6) {
      auto& [id, wanted] = *pick();
      const auto kind = below(2);
      const Model::Wanted w{.bytes = below(8) == 0 ? 0 : 1 + below(900),
                            .due_ms = static_cast<int>(below(50))};
      wanted[kind] = w;
      want(admission, id, w.bytes, w.due_ms, static_cast<DemandKind>(kind));
    } else {
      const auto id = pick()->first;
      Account account;
      account.received_bytes = below(model.bytes[id] + 1);
      account.released_bytes = below(model.bytes[id] - account.received_bytes + 1);
      account.requests_ended = static_cast<std::uint32_t>(below(model.requests[id] + 1));
      admission.account(id, account, kNow);
      model.bytes[id] -= account.received_bytes + account.released_bytes;
      model.requests[id] -= account.requests_ended;
    }
    for (;;) {
      // The earliest due demand that a free request allows.
      std::optional<int> earliest;
      std::uint64_t smallest_wanted = UINT64_MAX;
      for (const auto& [id, wanted] : model.demands) {
        for (std::size_t kind = 0; kind < 2; ++kind) {
          if (wanted[kind].bytes == 0) continue;
          if (kind == 0 && model.total_requests() >= options.requests_in_flight_max) continue;
          if (!earliest || wanted[kind].due_ms < *earliest) earliest = wanted[kind].due_ms;
          smallest_wanted = std::min(smallest_wanted, wanted[kind].bytes);
        }
      }
      const auto decision = admission.next(kNow);
      EXPECT_EQ(decision.wake_at, TimePoint::max());
      const std::uint64_t room = options.bytes_in_flight_max - model.total_bytes();
      if (!decision.grant) {
        ASSERT_TRUE(!earliest || room < options.grant_bytes_min) << "work was left undone";
        break;
      }
      const auto& grant = *decision.grant;
      auto& wanted = model.demands.at(grant.stream)[static_cast<std::size_t>(grant.kind)];
      ASSERT_TRUE(earliest);
      ASSERT_EQ(wanted.due_ms, *earliest);
      ASSERT_GE(grant.bytes, 1u);
      ASSERT_EQ(grant.bytes, std::min(wanted.bytes, room));
      wanted = {};
      model.bytes[grant.stream] += grant.bytes;
      if (grant.kind == DemandKind::kStart) ++model.requests[grant.stream];
      ASSERT_LE(model.total_requests(), options.requests_in_flight_max);
      ASSERT_LE(model.total_bytes(), options.bytes_in_flight_max);
    }
    const auto usage = admission.usage();
    ASSERT_EQ(usage.bytes_in_flight, model.total_bytes());
    ASSERT_EQ(usage.requests_in_flight, model.total_requests());
    ASSERT_EQ(usage.streams, model.demands.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRuns, testing::Range(1U, 33U));

TEST(EarliestDueFirst, NobodyStarvesBesideStreamsThatAlwaysWantMore) {
  EarliestDueFirst admission({.streams_max = 101, .requests_in_flight_max = 1});
  std::vector<StreamId> greedy;
  for (int i = 0; i < 100; ++i) greedy.push_back(must_add(admission));
  const auto modest = must_add(admission, Priority::kBackground);
  want(admission, modest, 1, 0);
  std::map<StreamId, int> turns;
  for (const auto id : greedy) want(admission, id, 1, 0);
  int served_at_ms = -1;
  for (int ms = 0; ms < 3000 && served_at_ms < 0; ++ms) {
    const auto grant = admission.next(kNow).grant;
    ASSERT_TRUE(grant);
    if (grant->stream == modest) served_at_ms = ms;
    admission.account(grant->stream, {.received_bytes = 1, .requests_ended = 1}, kNow);
    want(admission, grant->stream, 1, ms);
    ++turns[grant->stream];
  }
  EXPECT_GE(served_at_ms, 2000);
  EXPECT_LE(served_at_ms, 2200);
  for (const auto id : greedy) EXPECT_GE(turns[id], 20);
}

TEST(EarliestDueFirst, TenThousandStreamsShareTheLimits) {
  EarliestDueFirst admission({.streams_max = 10'000, .requests_in_flight_max = 64});
  std::vector<StreamId> ids;
  for (int i = 0; i < 10'000; ++i) ids.push_back(must_add(admission));
  for (int i = 0; i < 10'000; ++i)
    want(admission, ids[static_cast<std::size_t>(i)], 100, (i * 7919) % 10'000);
  int last_due = -1;
  std::deque<StreamId> running;
  std::size_t count = 0;
  while (count < 10'000) {
    while (auto grant = admission.next(kNow).grant) {
      running.push_back(grant->stream);
      ++count;
    }
    ASSERT_LE(running.size(), 64u);
    ASSERT_FALSE(running.empty());
    const auto index = std::ranges::find(ids, running.front()) - ids.begin();
    const int due = static_cast<int>((index * 7919) % 10'000);
    EXPECT_GT(due, last_due);
    last_due = due;
    admission.account(running.front(), {.received_bytes = 100, .requests_ended = 1}, kNow);
    running.pop_front();
  }
}

}  // namespace
}  // namespace objectcache::sched
