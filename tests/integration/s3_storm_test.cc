// Several loops read, write, list and cancel at once while the server misbehaves at random; every
// byte is compared. The number of operations grows with OC_STORM (a factor), for long runs.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/random.h"
#include "integration/fake_s3_store.h"

namespace objectcache::integration {
namespace {

using fake_s3::FaultKind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::GetOutcome;
using store::conformance::Bytes;

constexpr std::size_t kObjects = 16;
constexpr std::size_t kObjectBytes = 200'000;

/// What object `number` holds, whichever writer wrote it.
const Bytes& content(std::size_t number) {
  static const std::vector<Bytes> all = [] {
    std::vector<Bytes> out;
    for (std::size_t i = 0; i < kObjects; ++i) {
      out.push_back(store::conformance::make_bytes(kObjectBytes, i + 1));
    }
    return out;
  }();
  return all[number];
}

/// One loop's operations; all members are touched on its thread only, until it has finished.
class Worker {
 public:
  Worker(store::ObjectStore& store, EventLoop& loop, std::uint64_t seed, std::size_t operations)
      : store_(store), loop_(loop), random_(seed), left_(operations) {}

  void start() {
    for (int i = 0; i < 8; ++i) next();
  }
  [[nodiscard]] bool finished() const { return running_ == 0 && left_ == 0; }

  std::size_t good = 0;
  std::size_t failed = 0;
  std::size_t cancelled = 0;
  std::vector<std::string> problems;

 private:
  struct Read {
    Bytes memory;
    std::size_t number = 0;
    std::uint64_t offset = 0;
    TimePoint deadline;
    store::OperationHandle handle;
    bool ended = false;
  };

  void complain(std::string text) {
    if (problems.size() < 10) problems.push_back(std::move(text));
  }
  /// Errors are allowed; these are not.
  void check(const Error& error) {
    if (error.code == ErrorCode::kCancelled) {
      ++cancelled;
      return;
    }
    ++failed;
    if (error.code == ErrorCode::kInternal || error.code == ErrorCode::kInvalidArgument ||
        error.key.empty() || error.action.empty()) {
      complain(error.to_string());
    }
  }
  void ended(TimePoint deadline) {
    --running_;
    if (loop_.now() > deadline + seconds(1)) complain("a completion came late");
    // Not from inside the completion, so that a fast failure cannot recurse.
    loop_.post([this] { next(); });
  }

  void next() {
    if (left_ == 0) return;
    --left_;
    ++running_;
    if (random_.chance(0.1)) {
      write();
    } else {
      read();
    }
  }

  void write() {
    const std::size_t number = random_.below(kObjects);
    const TimePoint deadline = loop_.now() + seconds(20);
    store_.put(loop_,
               {.key = {"k" + std::to_string(number)},
                .body = {content(number)},
                .mode = random_.chance(0.5) ? store::PutMode::kIfAbsent : store::PutMode::kReplace,
                .deadline = deadline},
               [this, deadline](const Result<store::PutAnswer>& answer) {
                 if (answer) {
                   ++good;
                 } else {
                   check(answer.error());
                 }
                 ended(deadline);
               });
  }

  void read() {
    const auto read = std::make_shared<Read>();
    read->number = random_.below(kObjects);
    read->offset = random_.below(kObjectBytes - 1);
    read->memory.resize(1 + random_.below(kObjectBytes - read->offset));
    read->deadline = loop_.now() + milliseconds(random_.chance(0.1) ? 30 : 20'000);
    store::GetRequest request{
        .key = {"k" + std::to_string(read->number)},
        .offset = read->offset,
        .length = read->memory.size(),
        .destination = store::conformance::cut<Segment>(read->memory, {1 + random_.below(50'000)}),
        .version = {},
        .deadline = read->deadline,
        .on_bytes = {}};
    request.on_bytes = [this, read](std::uint64_t bytes, const store::ObjectVersion&) {
      if (read->ended) complain("on_bytes after the completion");
      if (!same(*read, bytes)) complain("wrong bytes were announced");
    };
    read->handle = store_.get(loop_, std::move(request), [this, read](const auto& answer) {
      read->ended = true;
      if (!answer) {
        check(answer.error());
      } else if (answer->outcome == GetOutcome::kOk) {
        ++good;
        if (!same(*read, read->memory.size())) complain("wrong bytes were delivered");
      } else if (answer->outcome != GetOutcome::kVersionChanged) {
        complain("an object is missing or too short");
      }
      // The engine uses the memory again at once, and nothing may come late.
      std::ranges::fill(read->memory, std::byte{'!'});
      loop_.run_at(loop_.now() + milliseconds(20), [this, read] {
        for (const std::byte b : read->memory) {
          if (b != std::byte{'!'}) {
            complain("memory was written after the completion");
            break;
          }
        }
      });
      ended(read->deadline);
    });
    if (random_.chance(0.1)) {
      loop_.run_at(loop_.now() + std::chrono::microseconds(random_.below(20'000)),
                   [read] { read->handle->cancel(); });
    }
  }

  static bool same(const Read& read, std::uint64_t bytes) {
    return std::equal(read.memory.begin(), read.memory.begin() + static_cast<std::ptrdiff_t>(bytes),
                      content(read.number).begin() + static_cast<std::ptrdiff_t>(read.offset));
  }

  store::ObjectStore& store_;
  EventLoop& loop_;
  Random random_;
  std::size_t left_;
  std::size_t running_ = 0;
};

std::size_t factor() {
  const char* const text = std::getenv("OC_STORM");
  return text == nullptr ? 1 : std::max<std::size_t>(1, std::strtoull(text, nullptr, 10));
}

TEST(S3Storm, EveryByteOfSeveralLoopsIsRight) {
  fake_s3::FakeS3Options options;
  options.records_max = 0;
  FakeServerAndStore both(options, "&stall_timeout=150ms&connections=8&retries=8");
  const store::ConformanceOptions conformance;
  {
    store::conformance::Harness h(both, conformance);
    for (std::size_t i = 0; i < kObjects; ++i) {
      bool done = false;
      h.driver().run([&] {
        both.store().put(h.loop(),
                         {.key = {"k" + std::to_string(i)},
                          .body = {content(i)},
                          .deadline = h.loop().now() + seconds(20)},
                         [&](const auto& answer) { done = answer.has_value(); });
      });
      ASSERT_TRUE(h.driver().until([&] { return done; }, seconds(20)));
    }
  }
  const auto fault = [&](FaultKind kind, double probability, fake_s3::Fault more = {}) {
    more.kind = kind;
    more.probability = probability;
    both.fault(more);
  };
  fault(FaultKind::kStatus, 0.03, {.status = 500, .s3_code = "InternalError"});
  fault(FaultKind::kStatus, 0.02, {.status = 503, .s3_code = "SlowDown"});
  fault(FaultKind::kDelay, 0.03, {.delay = milliseconds(30)});
  fault(FaultKind::kCloseUnanswered, 0.02);
  fault(FaultKind::kResetUnapplied, 0.02);
  fault(FaultKind::kGarbage, 0.01);
  fault(FaultKind::kStallUnanswered, 0.005);
  fault(FaultKind::kStallAfterHead, 0.005);
  fault(FaultKind::kStallInBody, 0.005, {.bytes = 10'000});
  fault(FaultKind::kReset, 0.03, {.bytes = 20'000});
  fault(FaultKind::kTruncateBody, 0.03, {.bytes = 3'000});
  fault(FaultKind::kShortBody, 0.01, {.bytes = 10});
  fault(FaultKind::kOverlongBody, 0.01, {.bytes = 10});
  fault(FaultKind::kTrailingBytes, 0.01, {.bytes = 10});
  fault(FaultKind::kBadContentRange, 0.01);
  fault(FaultKind::kRangeAs200, 0.02);
  fault(FaultKind::kOtherEtag, 0.005);
  fault(FaultKind::kSlowBody, 0.01, {.bytes = 20'000, .delay = milliseconds(2)});

  constexpr std::size_t kLoops = 3;
  const std::size_t operations = 700 * factor();
  std::vector<std::unique_ptr<store::LoopDriver>> drivers;
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < kLoops; ++i) {
    drivers.push_back(both.another_driver());
    workers.push_back(
        std::make_unique<Worker>(both.store(), drivers[i]->loop(), i + 1, operations));
    drivers[i]->run([&] { workers[i]->start(); });
  }
  std::size_t good = 0;
  for (std::size_t i = 0; i < kLoops; ++i) {
    ASSERT_TRUE(drivers[i]->until([&] { return workers[i]->finished(); }, seconds(240 * factor())));
    ASSERT_FALSE(drivers[i]->until([] { return false; }, milliseconds(50)));  // Late writes.
    for (const std::string& problem : workers[i]->problems) ADD_FAILURE() << problem;
    good += workers[i]->good;
  }
  const auto stats = both.stats();
  RecordProperty("faults", std::to_string(both.server().faults().injected()));
  RecordProperty("retries", std::to_string(stats.retries));
  EXPECT_EQ(stats.in_flight, 0U);
  EXPECT_GT(both.server().faults().injected(), operations / 2);
  EXPECT_GT(good, kLoops * operations * 3 / 4);
}

}  // namespace
}  // namespace objectcache::integration
