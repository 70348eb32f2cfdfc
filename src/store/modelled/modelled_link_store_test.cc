#include "store/modelled/modelled_link_store.h"

#include <gtest/gtest.h>

#include <vector>

#include "store/conformance.h"
#include "store/memory/memory_store.h"
#include "store/testing/conformance_harness.h"

namespace objectcache::store {
namespace {

using std::chrono::milliseconds;

class ModelledSubject final : public StoreUnderTest {
 public:
  explicit ModelledSubject(ModelledLinkStore::Options options) : store_(memory_, options) {}
  [[nodiscard]] ObjectStore& store() override { return store_; }
  [[nodiscard]] LoopDriver& driver() override { return driver_; }
  [[nodiscard]] FakeEventLoop& loop() { return driver_.loop(); }

 private:
  MemoryStore memory_;
  ModelledLinkStore store_;
  FakeLoopDriver driver_;
};

const bool kRegistered = register_conformance("ModelledLinkStoreConformance", [] {
  return std::make_unique<ModelledSubject>(ModelledLinkStore::Options{
      .first_byte = milliseconds(1), .read_bytes_per_second = 2e9, .write_bytes_per_second = 1e9});
});

struct Fixture {
  explicit Fixture(ModelledLinkStore::Options options) : subject(options), h(subject, suite) {}
  template <class Work>
  Duration time(Work work) {
    const TimePoint start = subject.loop().now();
    work();
    return subject.loop().now() - start;
  }
  ConformanceOptions suite;
  ModelledSubject subject;
  conformance::Harness h;
};
/// The driver looks once a millisecond.
constexpr Duration kGrain = milliseconds(1);

TEST(ModelledLinkStore, ACallTakesTheFirstByteTime) {
  Fixture f({.first_byte = milliseconds(20)});
  EXPECT_EQ(f.time([&] { f.h.create("a", conformance::make_bytes(1000, 1)); }), milliseconds(20));
  EXPECT_EQ(f.time([&] { EXPECT_TRUE(f.h.head("a")); }), milliseconds(20));
  EXPECT_EQ(f.time([&] { f.h.expect_get_outcome("b", GetOutcome::kMissing, {.length = 1}); }),
            milliseconds(20));
}

TEST(ModelledLinkStore, BytesTakeTheirTimeInBothDirections) {
  Fixture f({.first_byte = milliseconds(10),
             .read_bytes_per_second = 1e7,
             .write_bytes_per_second = 5e6});
  const auto body = conformance::make_bytes(1'000'000, 1);
  const Duration write = f.time([&] { f.h.create("a", body); });
  EXPECT_GE(write, milliseconds(210));
  EXPECT_LE(write, milliseconds(210) + kGrain);
  const Duration read = f.time([&] { f.h.expect_get("a", body); });
  EXPECT_GE(read, milliseconds(110));
  EXPECT_LE(read, milliseconds(110) + kGrain);
}

TEST(ModelledLinkStore, RunningReadsShareTheLinkFairly) {
  Fixture f({.read_bytes_per_second = 1e7});
  const auto body = conformance::make_bytes(1'000'000, 1);
  f.h.create("a", body);
  std::vector<std::shared_ptr<conformance::Reading>> readings;
  for (int i = 0; i < 4; ++i) readings.push_back(f.h.start_get("a", {.length = body.size()}));
  f.h.settle(milliseconds(200));
  for (const auto& reading : readings) {
    EXPECT_NEAR(static_cast<double>(reading->reached()), 5e5, 140'000.0);
  }
  const Duration rest = f.time([&] {
    for (const auto& reading : readings) EXPECT_TRUE(f.h.finish(reading->call).has_value());
  });
  EXPECT_GE(rest, milliseconds(199));
  EXPECT_LE(rest, milliseconds(200) + kGrain);
}

TEST(ModelledLinkStore, AReadThatHoldsStillLeavesTheLinkToOthers) {
  Fixture f({.read_bytes_per_second = 1e7});
  const auto body = conformance::make_bytes(1'000'000, 1);
  f.h.create("a", body);
  auto held = f.h.start_get("a", {.length = body.size(), .grant_bytes = 100'000});
  f.h.settle(milliseconds(50));
  EXPECT_EQ(held->reached(), 100'000U);
  EXPECT_LE(f.time([&] { f.h.expect_get("a", body); }), milliseconds(100) + kGrain);
  held->call->operation->grant(UINT64_MAX);
  const Duration rest = f.time([&] { EXPECT_TRUE(f.h.finish(held->call).has_value()); });
  EXPECT_GE(rest, milliseconds(89));
  EXPECT_LE(rest, milliseconds(90) + kGrain);
}

TEST(ModelledLinkStore, ADeadlineBeforeTheFirstByteIsKept) {
  Fixture f({.first_byte = milliseconds(50)});
  auto reading = f.h.start_get("a", {.length = 10, .timeout = milliseconds(20)});
  const Duration span = f.time([&] {
    const auto answer = f.h.finish(reading->call);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
  });
  EXPECT_EQ(span, milliseconds(20));
}

}  // namespace
}  // namespace objectcache::store
