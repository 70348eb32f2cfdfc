#include "stream/admission_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "base/fake_event_loop.h"
#include "sched/earliest_due_first.h"

namespace objectcache::stream {
namespace {

using sched::Admission;
using sched::Demand;
using sched::DemandKind;
using std::chrono::milliseconds;

struct CountingListener final : AdmissionPoint::Listener {
  void on_admission() override { ++calls; }
  int calls = 0;
};

Demand bytes(std::uint64_t n) { return {.bytes = n, .due = TimePoint{std::chrono::hours(1)}}; }

struct Point {
  explicit Point(std::uint32_t requests = 1)
      : admission(std::make_unique<sched::EarliestDueFirst>(
            sched::EarliestDueFirst::Options{.requests_in_flight_max = requests})) {}
  sched::StreamId add(const std::shared_ptr<CountingListener>& listener) {
    return admission.add({.layer_bytes = {}, .windows = {}}, loop, listener).value();
  }
  FakeEventLoop loop;
  AdmissionPoint admission;
  std::shared_ptr<CountingListener> a = std::make_shared<CountingListener>();
  std::shared_ptr<CountingListener> b = std::make_shared<CountingListener>();
};

TEST(AdmissionPoint, WhoAsksCollectsAtOnceWithoutBeingWoken) {
  Point point;
  const auto id = point.add(point.a);
  const auto grants = point.admission.update(id, {.account = {}, .start = bytes(100), .go_on = {}});
  EXPECT_EQ(grants.start_bytes, 100u);
  EXPECT_EQ(grants.go_on_bytes, 0u);
  point.loop.run_ready();
  EXPECT_EQ(point.a->calls, 0);
}

TEST(AdmissionPoint, AnotherStreamIsWokenOnItsLoopOnce) {
  Point point;
  const auto a = point.add(point.a);
  const auto b = point.add(point.b);
  EXPECT_EQ(point.admission.update(a, {.account = {}, .start = bytes(1), .go_on = {}}).start_bytes,
            1u);
  EXPECT_TRUE(
      point.admission.update(b, {.account = {}, .start = bytes(2), .go_on = {}}).is_empty());
  // The end of a's read lets b start; b hears of it later, on its loop.
  const sched::Account ended{.received_bytes = 1, .released_bytes = 0, .requests_ended = 1};
  EXPECT_TRUE(point.admission.update(a, {.account = ended, .start = {}, .go_on = {}}).is_empty());
  EXPECT_EQ(point.b->calls, 0);
  point.loop.run_ready();
  EXPECT_EQ(point.b->calls, 1);
  // What waits to be collected is not doubled by stating the demand again.
  EXPECT_EQ(point.admission.update(b, {.account = {}, .start = bytes(7), .go_on = {}}).start_bytes,
            2u);
  EXPECT_TRUE(point.admission.update(b, {}).is_empty());
  point.loop.run_ready();
  EXPECT_EQ(point.b->calls, 1);
}

TEST(AdmissionPoint, ALeavingStreamFreesItsTurnAndADeadOneIsNotCalled) {
  Point point;
  const auto a = point.add(point.a);
  const auto b = point.add(point.b);
  static_cast<void>(point.admission.update(a, {.account = {}, .start = bytes(1), .go_on = {}}));
  static_cast<void>(point.admission.update(b, {.account = {}, .start = bytes(1), .go_on = {}}));
  point.admission.remove(a);
  point.b.reset();
  point.loop.run_ready();
  EXPECT_EQ(point.admission.update(b, {}).start_bytes, 1u);
}

/// A policy of the kind that grants by time: so many bytes each millisecond.
class FakePacer final : public Admission {
 public:
  Result<sched::StreamId> add(const sched::StreamInfo&, TimePoint) override {
    return sched::StreamId{0};
  }
  void remove(sched::StreamId, TimePoint) override {}
  void demand(sched::StreamId, DemandKind, const Demand& demand, TimePoint) override {
    wanted_ = demand.bytes;
  }
  void account(sched::StreamId, const sched::Account&, TimePoint) override {}
  Decision next(TimePoint now) override {
    if (wanted_ == 0) return {};
    if (now < free_at_) return {.grant = {}, .wake_at = free_at_};
    free_at_ = now + milliseconds(1);
    return {
        .grant =
            Grant{.stream = {}, .kind = DemandKind::kContinue, .bytes = std::exchange(wanted_, 0)},
        .wake_at = TimePoint::max()};
  }

 private:
  std::uint64_t wanted_ = 0;
  TimePoint free_at_{};
};

TEST(AdmissionPoint, WakesWhenThePolicySaysSo) {
  FakeEventLoop loop;
  AdmissionPoint point(std::make_unique<FakePacer>());
  auto listener = std::make_shared<CountingListener>();
  const auto id = point.add({.layer_bytes = {}, .windows = {}}, loop, listener).value();
  EXPECT_EQ(point.update(id, {.account = {}, .start = {}, .go_on = bytes(5)}).go_on_bytes, 5u);
  EXPECT_TRUE(point.update(id, {.account = {}, .start = {}, .go_on = bytes(6)}).is_empty());
  EXPECT_TRUE(point.update(id, {}).is_empty());
  EXPECT_EQ(loop.timers(), 1u);
  loop.run_for(std::chrono::microseconds(999));
  EXPECT_EQ(listener->calls, 0);
  loop.run_for(std::chrono::microseconds(1));
  EXPECT_EQ(listener->calls, 1);
  EXPECT_EQ(point.update(id, {}).go_on_bytes, 6u);
  EXPECT_EQ(loop.timers(), 0u);
}

TEST(AdmissionPoint, ATimerMayOutliveIt) {
  FakeEventLoop loop;
  {
    AdmissionPoint point(std::make_unique<FakePacer>());
    auto listener = std::make_shared<CountingListener>();
    const auto id = point.add({.layer_bytes = {}, .windows = {}}, loop, listener).value();
    static_cast<void>(point.update(id, {.account = {}, .start = {}, .go_on = bytes(5)}));
    static_cast<void>(point.update(id, {.account = {}, .start = {}, .go_on = bytes(6)}));
  }
  EXPECT_TRUE(loop.run_to_idle());
}

}  // namespace
}  // namespace objectcache::stream
