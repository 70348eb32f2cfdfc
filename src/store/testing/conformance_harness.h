#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "store/conformance.h"

namespace objectcache::store::conformance {

using Bytes = std::vector<std::byte>;

/// Repeatable bytes that differ from seed to seed.
[[nodiscard]] inline Bytes make_bytes(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  Bytes out(size);
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(out.data() + i, &word, 8);
  }
  for (; i < size; ++i) out[i] = static_cast<std::byte>(random.next());
  return out;
}

/// Cuts `memory` into segments of these sizes, over and over; the last takes what is left.
template <class Span, class Memory>
[[nodiscard]] std::vector<Span> cut(Memory& memory, const std::vector<std::size_t>& sizes) {
  std::vector<Span> out;
  Span rest(memory.data(), memory.size());
  for (std::size_t i = 0; !rest.empty(); ++i) {
    const std::size_t size = std::min(sizes[i % sizes.size()], rest.size());
    out.push_back(rest.subspan(0, size));
    rest = rest.subspan(size);
  }
  return out;
}

/// A started call, and what has come of it. Touched on the loop only, until it is finished.
template <class T>
struct Pending {
  OperationHandle operation;
  std::optional<Result<T>> result;
  int completions = 0;
  bool inside_call = false;
};

/// What a GET has told and delivered so far.
struct Reading {
  Bytes memory;
  std::vector<std::uint64_t> progress;  ///< Every on_bytes.
  std::string version;
  std::shared_ptr<Pending<GetAnswer>> call;
  std::function<void(Reading&, std::uint64_t)> hook;  ///< Called within on_bytes.

  [[nodiscard]] std::uint64_t reached() const { return progress.empty() ? 0 : progress.back(); }
};

struct GetOptions {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::optional<ObjectVersion> version{};
  std::vector<std::size_t> segment_sizes{SIZE_MAX};
  std::uint64_t grant_bytes = UINT64_MAX;
  std::optional<Duration> timeout{};
};

/// One case at work: starts calls on a driver, waits for them, and checks the rules that hold for
/// every call (completed exactly once, on the loop, never from inside).
class Harness {
 public:
  Harness(StoreUnderTest& subject, const ConformanceOptions& options)
      : subject_(subject),
        options_(options),
        store_(&subject.store()),
        driver_(&subject.driver()),
        prefix_(subject.key_prefix()) {}
  /// The same store (or another client of it), used from another loop.
  Harness(Harness& parent, ObjectStore& store, LoopDriver& driver)
      : subject_(parent.subject_),
        options_(parent.options_),
        store_(&store),
        driver_(&driver),
        prefix_(parent.prefix_) {}

  [[nodiscard]] StoreUnderTest& subject() { return subject_; }
  [[nodiscard]] const ConformanceOptions& options() const { return options_; }
  [[nodiscard]] ObjectStore& store() { return *store_; }
  [[nodiscard]] LoopDriver& driver() { return *driver_; }
  [[nodiscard]] EventLoop& loop() { return driver_->loop(); }
  [[nodiscard]] ObjectKey key(std::string_view name) const { return {prefix_ + std::string(name)}; }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  [[nodiscard]] TimePoint deadline() { return loop().now() + options_.patience; }

  template <class T, class Start>
  std::shared_ptr<Pending<T>> start(Start start_call) {
    auto pending = std::make_shared<Pending<T>>();
    start(pending, std::move(start_call));
    return pending;
  }
  template <class T, class Start>
  void start(const std::shared_ptr<Pending<T>>& pending, Start start_call) {
    driver_->run([&] {
      pending->inside_call = true;
      pending->operation = start_call([pending, &loop = loop()](Result<T> result) {
        EXPECT_FALSE(pending->inside_call) << "completed from inside the call";
        EXPECT_TRUE(loop.is_owner_thread()) << "completed off the loop";
        EXPECT_EQ(++pending->completions, 1) << "completed more than once";
        pending->result.emplace(std::move(result));
      });
      pending->inside_call = false;
      EXPECT_NE(pending->operation, nullptr);
    });
  }
  template <class T>
  Result<T> finish(const std::shared_ptr<Pending<T>>& pending) {
    const bool came =
        driver_->until([&] { return pending->result.has_value(); }, options_.patience * 2);
    EXPECT_TRUE(came) << "no completion came";
    if (!came) return fail(ErrorCode::kInternal, "no completion came");
    return *pending->result;
  }
  /// Lets the loop work on, so that what should not happen has its chance.
  void settle(Duration span = std::chrono::milliseconds(20)) {
    static_cast<void>(driver_->until([] { return false; }, span));
  }

  std::shared_ptr<Pending<PutAnswer>> start_put(std::string_view name, const Bytes& body,
                                                PutMode mode = PutMode::kIfAbsent,
                                                const std::vector<std::size_t>& cuts = {SIZE_MAX}) {
    return start<PutAnswer>([&](PutCompletion done) {
      return store_->put(loop(),
                         {.key = key(name),
                          .body = cut<ConstSegment>(body, cuts),
                          .mode = mode,
                          .deadline = deadline()},
                         std::move(done));
    });
  }
  Result<PutAnswer> put(std::string_view name, const Bytes& body,
                        PutMode mode = PutMode::kIfAbsent) {
    return finish(start_put(name, body, mode));
  }
  /// Puts an object that must not exist before.
  ObjectVersion create(std::string_view name, const Bytes& body) {
    const auto answer = put(name, body);
    EXPECT_TRUE(answer) << answer.error().to_string();
    if (!answer) return {};
    EXPECT_EQ(answer->outcome, PutOutcome::kCreated);
    return answer->version;
  }

  std::shared_ptr<Reading> start_get(std::string_view name, GetOptions options,
                                     std::function<void(Reading&, std::uint64_t)> hook = {}) {
    auto reading = std::make_shared<Reading>();
    reading->memory.resize(options.length, std::byte{0xAA});
    reading->hook = std::move(hook);
    reading->call = std::make_shared<Pending<GetAnswer>>();
    start(reading->call, [&](GetCompletion done) {
      GetRequest request{.key = key(name),
                         .offset = options.offset,
                         .length = options.length,
                         .destination = cut<Segment>(reading->memory, options.segment_sizes),
                         .version = options.version,
                         .deadline = options.timeout ? loop().now() + *options.timeout : deadline(),
                         .grant_bytes = options.grant_bytes,
                         .on_bytes = {}};
      request.on_bytes = [r = reading.get(), length = options.length](
                             std::uint64_t bytes, const ObjectVersion& version) {
        EXPECT_FALSE(r->call->inside_call) << "on_bytes from inside the call";
        EXPECT_GT(bytes, r->reached()) << "on_bytes must grow";
        EXPECT_LE(bytes, length);
        EXPECT_EQ(r->call->completions, 0) << "on_bytes after the completion";
        r->progress.push_back(bytes);
        r->version = version.text;
        if (r->hook) r->hook(*r, bytes);
      };
      return store_->get(loop(), std::move(request), std::move(done));
    });
    readings_.push_back(reading);  // on_bytes refers to it.
    return reading;
  }
  /// Reads and expects exactly `expected` from `options.offset` on.
  void expect_get(std::string_view name, const Bytes& expected, GetOptions options = {}) {
    options.length = expected.size();
    auto reading = start_get(name, options);
    const auto answer = finish(reading->call);
    ASSERT_TRUE(answer) << answer.error().to_string();
    ASSERT_EQ(answer->outcome, GetOutcome::kOk);
    EXPECT_TRUE(reading->memory == expected) << "wrong bytes of " << name;
    EXPECT_FALSE(answer->version.text.empty());
    if (!reading->progress.empty()) {
      EXPECT_EQ(reading->version, answer->version.text);
    }
  }
  /// Reads and expects anything but kOk.
  void expect_get_outcome(std::string_view name, GetOutcome outcome, GetOptions options) {
    auto reading = start_get(name, std::move(options));
    const auto answer = finish(reading->call);
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->outcome, outcome);
    EXPECT_TRUE(reading->progress.empty()) << "bytes were delivered";
  }
  std::shared_ptr<Pending<std::optional<ObjectInfo>>> start_head(std::string_view name) {
    return start<std::optional<ObjectInfo>>([&](HeadCompletion done) {
      return store_->head(loop(), key(name), deadline(), std::move(done));
    });
  }
  std::optional<ObjectInfo> head(std::string_view name) {
    auto answer = finish(start_head(name));
    EXPECT_TRUE(answer) << answer.error().to_string();
    return answer ? *answer : std::nullopt;
  }
  std::shared_ptr<Pending<void>> start_remove(std::string_view name) {
    return start<void>([&](RemoveCompletion done) {
      return store_->remove(loop(), key(name), deadline(), std::move(done));
    });
  }
  void remove(std::string_view name) {
    const auto answer = finish(start_remove(name));
    EXPECT_TRUE(answer) << answer.error().to_string();
  }
  Result<std::vector<RemoveFailure>> remove_many(std::vector<ObjectKey> keys) {
    return finish(start<std::vector<RemoveFailure>>([&](RemoveManyCompletion done) {
      return store_->remove_many(loop(), std::move(keys), deadline(), std::move(done));
    }));
  }
  Result<ListPage> list(ListRequest request) {
    return finish(start<ListPage>([&](ListCompletion done) {
      request.deadline = deadline();
      return store_->list(loop(), std::move(request), std::move(done));
    }));
  }

 private:
  StoreUnderTest& subject_;
  const ConformanceOptions& options_;
  ObjectStore* store_;
  LoopDriver* driver_;
  std::string prefix_;
  std::vector<std::shared_ptr<Reading>> readings_;
};

struct Case {
  std::string_view name;
  void (*run)(Harness& h);
};
// Each file of cases contributes its table.
[[nodiscard]] std::vector<Case> object_cases();
[[nodiscard]] std::vector<Case> listing_cases();
[[nodiscard]] std::vector<Case> progress_cases();
[[nodiscard]] std::vector<Case> refusal_cases();

}  // namespace objectcache::store::conformance
