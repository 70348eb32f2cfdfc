#include "store/testing/faulty_store.h"

#include <gtest/gtest.h>

#include <string>

#include "store/conformance.h"
#include "store/memory/memory_store.h"
#include "store/testing/conformance_harness.h"

namespace objectcache::store {
namespace {

using std::chrono::milliseconds;
using Fault = FaultyStore::Fault;

class FaultySubject final : public StoreUnderTest {
 public:
  explicit FaultySubject(FaultRates rates, std::uint64_t seed = 1) : store_(memory_, seed, rates) {}
  [[nodiscard]] FaultyStore& store() override { return store_; }
  [[nodiscard]] FakeLoopDriver& driver() override { return driver_; }

 private:
  MemoryStore memory_{{.piece_bytes = 10'000}};
  FaultyStore store_;
  FakeLoopDriver driver_;
};

// Without faults, and with harmless ones, it is a store like any other.
const bool kRegistered = register_conformance("FaultyStoreConformance", [] {
  return std::make_unique<FaultySubject>(FaultRates{.delayed = 0.3, .delay_max = milliseconds(2)});
});

struct Fixture {
  explicit Fixture(FaultRates rates, std::uint64_t seed = 1)
      : subject(rates, seed), h(subject, suite) {}
  /// Puts without faults.
  void create(std::string_view name, const conformance::Bytes& body, FaultRates rates_after) {
    subject.store().set_rates({});
    h.create(name, body);
    subject.store().set_rates(rates_after);
  }
  ConformanceOptions suite;
  FaultySubject subject;
  conformance::Harness h;
};

TEST(FaultyStore, FlipsExactlyOneBitBeforeItIsAnnounced) {
  Fixture f({});
  const auto body = conformance::make_bytes(100'000, 1);
  f.create("a", body, {.flipped = 1});
  for (int i = 0; i < 20; ++i) {
    conformance::Bytes announced;
    auto reading = f.h.start_get(
        "a", {.length = body.size(), .segment_sizes = {777, 20'000}},
        [&](conformance::Reading& r, std::uint64_t bytes) {
          announced.assign(r.memory.begin(), r.memory.begin() + static_cast<std::ptrdiff_t>(bytes));
        });
    const auto answer = f.h.finish(reading->call);
    ASSERT_TRUE(answer && answer->outcome == GetOutcome::kOk);
    int bits = 0;
    for (std::size_t j = 0; j < body.size(); ++j) {
      bits += std::popcount(std::to_integer<unsigned>(body[j] ^ reading->memory[j]));
    }
    EXPECT_EQ(bits, 1);
    EXPECT_TRUE(std::equal(announced.begin(), announced.end(), reading->memory.begin()))
        << "announced bytes changed";
  }
  EXPECT_EQ(f.subject.store().injected(Fault::kFlipped), 20U);
}

TEST(FaultyStore, CutsAfterAPart) {
  Fixture f({});
  const auto body = conformance::make_bytes(100'000, 1);
  f.create("a", body, {.cut = 1});
  for (int i = 0; i < 20; ++i) {
    auto reading = f.h.start_get("a", {.length = body.size()});
    const auto answer = f.h.finish(reading->call);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    EXPECT_LT(reading->reached(), body.size());
  }
}

TEST(FaultyStore, SwapsObjectsUnderTheVersionAskedFor) {
  Fixture f({});
  const auto a = conformance::make_bytes(1000, 1);
  const auto b = conformance::make_bytes(1000, 2);
  f.create("a", a, {});
  f.create("b", b, {});
  f.h.expect_get("b", b);
  const auto version = f.h.head("a")->version;
  f.subject.store().set_rates({.swapped = 1});
  f.h.expect_get("a", b, {.version = version});
  EXPECT_EQ(f.subject.store().injected(Fault::kSwapped), 1U);
}

TEST(FaultyStore, LiesAboutPresenceAndVersion) {
  Fixture f({});
  f.create("a", conformance::make_bytes(10, 1), {.missing = 1});
  f.h.expect_get_outcome("a", GetOutcome::kMissing, {.length = 10});
  f.subject.store().set_rates({.version_changed = 1});
  f.h.expect_get_outcome("a", GetOutcome::kVersionChanged, {.length = 10});
}

TEST(FaultyStore, ALostAnswerHasBeenDone) {
  Fixture f({.lost_answer = 1});
  const auto put = f.h.put("a", conformance::make_bytes(10, 1));
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kUnavailable);
  f.subject.store().set_rates({});
  EXPECT_TRUE(f.h.head("a"));
}

TEST(FaultyStore, AHangingCallEndsAtItsDeadlineOrByCancel) {
  Fixture f({.hanging = 1});
  auto first = f.h.start_get("a", {.length = 10, .timeout = milliseconds(30)});
  auto second = f.h.start_get("a", {.length = 10});
  f.h.settle(milliseconds(29));
  EXPECT_FALSE(first->call->result);
  EXPECT_EQ(f.h.finish(first->call).error().code, ErrorCode::kDeadlineExceeded);
  second->call->operation->cancel();
  EXPECT_EQ(f.h.finish(second->call).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(f.subject.driver().loop().timers(), 0U);
}

TEST(FaultyStore, OneSeedOneRun) {
  const FaultRates rates{.unavailable = 0.2, .throttled = 0.2, .missing = 0.2};
  const auto run = [&](std::uint64_t seed) {
    Fixture f(rates, seed);
    std::string out;
    for (int i = 0; i < 200; ++i) {
      const auto answer = f.h.finish(f.h.start_get("a", {.length = 1})->call);
      out += answer ? '.' : answer.error().code == ErrorCode::kThrottled ? 't' : 'u';
    }
    EXPECT_EQ(f.subject.store().injected_total(),
              f.subject.store().injected(Fault::kUnavailable) +
                  f.subject.store().injected(Fault::kThrottled) +
                  f.subject.store().injected(Fault::kMissing));
    return out;
  };
  const auto first = run(7);
  EXPECT_EQ(first, run(7));
  EXPECT_NE(first, run(8));
  EXPECT_NE(first.find('t'), std::string::npos);
  EXPECT_NE(first.find('u'), std::string::npos);
}

}  // namespace
}  // namespace objectcache::store
