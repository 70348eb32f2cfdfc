// Cases about calls under way: progress, grants, cancel, deadlines, memory after the completion.

#include "store/testing/conformance_harness.h"

namespace objectcache::store::conformance {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Fills the destination with a pattern and checks that nothing writes to it any more.
void expect_memory_is_ours(Harness& h, Reading& reading) {
  std::fill(reading.memory.begin(), reading.memory.end(), std::byte{0x5C});
  h.settle();
  EXPECT_TRUE(reading.memory == Bytes(reading.memory.size(), std::byte{0x5C}))
      << "memory was touched after the completion";
}

/// After a cancel: cancelled, or the result that was already decided.
template <class T>
void expect_cancelled_or_done(const Result<T>& answer) {
  if (answer) return;
  EXPECT_EQ(answer.error().code, ErrorCode::kCancelled) << answer.error().to_string();
}

void announced_bytes_are_in_place(Harness& h) {
  const Bytes body = make_bytes(3 * kMiB + 77, 31);
  h.create("progress", body);
  auto reading = h.start_get("progress", {.length = body.size(), .segment_sizes = {100'000, 3}},
                             [&](Reading& r, std::uint64_t bytes) {
                               EXPECT_EQ(std::memcmp(r.memory.data(), body.data(), bytes), 0)
                                   << "announced too early";
                             });
  const auto answer = h.finish(reading->call);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(reading->memory == body);
  if (!reading->progress.empty()) {
    EXPECT_EQ(reading->version, answer->version.text);
  }
}

void grant_is_never_exceeded_and_used_up(Harness& h) {
  const Bytes body = make_bytes(kMiB, 32);
  h.create("granted", body);
  auto reading = h.start_get("granted", {.length = kMiB, .grant_bytes = 100'000});
  std::uint64_t granted = 100'000;
  for (const std::uint64_t more : {0U, 1U, 300'000U, 250'000U}) {
    if (more != 0) h.driver().run([&] { reading->call->operation->grant(more); });
    granted += more;
    EXPECT_TRUE(
        h.driver().until([&] { return reading->reached() >= granted; }, h.options().patience))
        << "what was granted was not delivered: " << reading->reached() << " of " << granted;
    h.settle(milliseconds(10));
    h.driver().run([&] {
      EXPECT_EQ(reading->reached(), granted);
      EXPECT_FALSE(reading->call->result) << "completed without its bytes";
    });
    EXPECT_TRUE(Bytes(reading->memory.begin() + static_cast<std::ptrdiff_t>(granted),
                      reading->memory.end()) == Bytes(kMiB - granted, std::byte{0xAA}))
        << "read more than was granted";
  }
  h.driver().run([&] {
    reading->call->operation->grant(UINT64_MAX);
    reading->call->operation->grant(UINT64_MAX);
  });
  const auto answer = h.finish(reading->call);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(reading->memory == body);
}

void grant_from_nothing_and_from_inside_on_bytes(Harness& h) {
  const Bytes body = make_bytes(500'000, 33);
  h.create("pulled", body);
  auto reading = h.start_get("pulled", {.length = body.size(), .grant_bytes = 0},
                             [](Reading& r, std::uint64_t) { r.call->operation->grant(70'000); });
  h.settle(milliseconds(10));
  h.driver().run([&] {
    EXPECT_TRUE(reading->progress.empty());
    reading->call->operation->grant(1);
  });
  const auto answer = h.finish(reading->call);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(reading->memory == body);
  EXPECT_GE(reading->progress.size(), 2U);
  h.driver().run([&] { reading->call->operation->grant(5); });
}

void grant_in_the_turn_of_the_start(Harness& h) {
  const Bytes body = make_bytes(300'000, 44);
  h.create("early", body);
  Bytes memory(body.size(), std::byte{0xAA});
  const auto pending = h.start<GetAnswer>([&](GetCompletion done) {
    OperationHandle operation = h.store().get(h.loop(),
                                              {.key = h.key("early"),
                                               .length = body.size(),
                                               .destination = cut<Segment>(memory, {SIZE_MAX}),
                                               .deadline = h.deadline(),
                                               .grant_bytes = 1000},
                                              std::move(done));
    operation->grant(body.size() - 2000);
    operation->grant(1000);
    return operation;
  });
  const auto answer = h.finish(pending);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(memory == body);
}

void deadline_ends_a_read_that_holds_still(Harness& h) {
  h.create("held", make_bytes(kMiB, 34));
  auto reading =
      h.start_get("held", {.length = kMiB, .grant_bytes = 1000, .timeout = milliseconds(60)});
  const TimePoint started = h.loop().now();
  const auto answer = h.finish(reading->call);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_LT(h.loop().now() - started, std::chrono::seconds(5));
  h.driver().run([&] { reading->call->operation->grant(UINT64_MAX); });
  expect_memory_is_ours(h, *reading);
}

void deadline_in_the_past(Harness& h) {
  const Bytes body = make_bytes(100, 35);
  h.create("late", body);
  const TimePoint past = h.loop().now() - milliseconds(1);
  const auto expect_late = [](const auto& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded) << answer.error().to_string();
  };
  auto reading = h.start_get("late", {.length = 100, .timeout = milliseconds(-1)});
  expect_late(h.finish(reading->call));
  expect_memory_is_ours(h, *reading);
  expect_late(h.finish(h.start<PutAnswer>([&](PutCompletion done) {
    return h.store().put(
        h.loop(),
        {.key = h.key("late-put"), .body = cut<ConstSegment>(body, {50}), .deadline = past},
        std::move(done));
  })));
  expect_late(h.finish(h.start<std::optional<ObjectInfo>>([&](HeadCompletion done) {
    return h.store().head(h.loop(), h.key("late"), past, std::move(done));
  })));
  expect_late(h.finish(h.start<ListPage>([&](ListCompletion done) {
    return h.store().list(h.loop(), {.prefix = h.prefix(), .deadline = past}, std::move(done));
  })));
  expect_late(h.finish(h.start<void>([&](RemoveCompletion done) {
    return h.store().remove(h.loop(), h.key("late"), past, std::move(done));
  })));
  expect_late(h.finish(h.start<std::vector<RemoveFailure>>([&](RemoveManyCompletion done) {
    return h.store().remove_many(h.loop(), {h.key("late")}, past, std::move(done));
  })));
  EXPECT_FALSE(h.head("late-put"));
  h.expect_get("late", body);
}

/// Cancels right behind the start, in the same turn of the loop.
template <class T, class Start>
Result<T> start_and_cancel(Harness& h, Start start_call) {
  auto pending = h.start<T>([&](auto done) {
    OperationHandle operation = start_call(std::move(done));
    operation->cancel();
    operation->cancel();
    return operation;
  });
  auto answer = h.finish(pending);
  h.driver().run([&] {
    pending->operation->cancel();
    pending->operation->grant(1);
  });
  return answer;
}

void cancel_at_once(Harness& h) {
  const Bytes body = make_bytes(kMiB, 36);
  h.create("cancelled", body);
  Bytes memory(kMiB, std::byte{0xAA});
  expect_cancelled_or_done(start_and_cancel<GetAnswer>(h, [&](GetCompletion done) {
    return h.store().get(h.loop(),
                         {.key = h.key("cancelled"),
                          .length = kMiB,
                          .destination = cut<Segment>(memory, {SIZE_MAX}),
                          .deadline = h.deadline()},
                         std::move(done));
  }));
  std::fill(memory.begin(), memory.end(), std::byte{0x5C});
  h.settle();
  EXPECT_TRUE(memory == Bytes(kMiB, std::byte{0x5C})) << "memory was touched after the completion";
  const auto put = start_and_cancel<PutAnswer>(h, [&](PutCompletion done) {
    return h.store().put(h.loop(),
                         {.key = h.key("cancelled-put"),
                          .body = cut<ConstSegment>(body, {SIZE_MAX}),
                          .deadline = h.deadline()},
                         std::move(done));
  });
  expect_cancelled_or_done(put);
  if (h.head("cancelled-put")) h.expect_get("cancelled-put", body);
  expect_cancelled_or_done(start_and_cancel<std::optional<ObjectInfo>>(h, [&](auto done) {
    return h.store().head(h.loop(), h.key("cancelled"), h.deadline(), std::move(done));
  }));
  expect_cancelled_or_done(start_and_cancel<ListPage>(h, [&](auto done) {
    return h.store().list(h.loop(), {.prefix = h.prefix(), .deadline = h.deadline()},
                          std::move(done));
  }));
  expect_cancelled_or_done(start_and_cancel<void>(h, [&](auto done) {
    return h.store().remove(h.loop(), h.key("nothing"), h.deadline(), std::move(done));
  }));
  expect_cancelled_or_done(start_and_cancel<std::vector<RemoveFailure>>(h, [&](auto done) {
    return h.store().remove_many(h.loop(), {h.key("nothing")}, h.deadline(), std::move(done));
  }));
  h.expect_get("cancelled", body);
}

void cancel_from_inside_on_bytes(Harness& h) {
  const Bytes body = make_bytes(8 * kMiB, 37);
  h.create("inside", body);
  auto reading = h.start_get("inside", {.length = body.size()},
                             [](Reading& r, std::uint64_t) { r.call->operation->cancel(); });
  expect_cancelled_or_done(h.finish(reading->call));
  expect_memory_is_ours(h, *reading);
}

void cancel_while_holding_still(Harness& h) {
  h.create("still", make_bytes(kMiB, 38));
  for (const std::uint64_t grant_bytes : {0U, 10'000U}) {
    auto reading = h.start_get("still", {.length = kMiB, .grant_bytes = grant_bytes});
    h.settle(milliseconds(10));
    h.driver().run([&] { reading->call->operation->cancel(); });
    const auto answer = h.finish(reading->call);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kCancelled);
    h.driver().run([&] { reading->call->operation->grant(UINT64_MAX); });
    expect_memory_is_ours(h, *reading);
  }
}

void cancel_of_reads_at_many_moments(Harness& h) {
  const Bytes body = make_bytes(4 * kMiB, 39);
  h.create("moments", body);
  Random random(40);
  for (int i = 0; i < 40; ++i) {
    auto reading = h.start_get("moments", {.length = body.size(), .segment_sizes = {300'007}});
    h.settle(std::chrono::microseconds(random.below(4000)));
    h.driver().run([&] { reading->call->operation->cancel(); });
    const auto answer = h.finish(reading->call);
    expect_cancelled_or_done(answer);
    if (answer && answer->outcome == GetOutcome::kOk) {
      EXPECT_TRUE(reading->memory == body);
    }
    std::fill(reading->memory.begin(), reading->memory.end(), std::byte{0x5C});
    h.settle(milliseconds(2));
    EXPECT_TRUE(reading->memory == Bytes(body.size(), std::byte{0x5C}))
        << "memory was touched after the completion";
  }
}

void cancelled_writes_leave_a_whole_object_or_none(Harness& h) {
  const Bytes body = make_bytes(3 * kMiB, 41);
  Random random(42);
  for (int i = 0; i < 20; ++i) {
    const auto name = "write-" + std::to_string(i);
    auto memory = std::make_unique<Bytes>(body);
    const auto put = h.start_put(name, *memory, PutMode::kIfAbsent, {500'000});
    h.settle(std::chrono::microseconds(random.below(6000)));
    h.driver().run([&] { put->operation->cancel(); });
    const auto answer = h.finish(put);
    expect_cancelled_or_done(answer);
    std::fill(memory->begin(), memory->end(), std::byte{0});
    memory.reset();  // The address sanitizer sees a late read.
    h.settle(milliseconds(2));
    const auto info = h.head(name);
    EXPECT_TRUE(info || !answer) << "a finished write is not there";
    if (info) h.expect_get(name, body);
  }
}

void letting_go_of_the_handle_does_not_cancel(Harness& h) {
  const Bytes body = make_bytes(2 * kMiB, 43);
  const auto put = h.start_put("dropped", body);
  h.driver().run([&] { put->operation.reset(); });
  const auto answer = h.finish(put);
  ASSERT_TRUE(answer) << answer.error().to_string();
  auto reading = h.start_get("dropped", {.length = body.size()});
  h.driver().run([&] { reading->call->operation.reset(); });
  ASSERT_TRUE(h.finish(reading->call));
  EXPECT_TRUE(reading->memory == body);
}

}  // namespace

std::vector<Case> progress_cases() {
  return {
      {"announced_bytes_are_in_place", announced_bytes_are_in_place},
      {"grant_is_never_exceeded_and_used_up", grant_is_never_exceeded_and_used_up},
      {"grant_from_nothing_and_from_inside_on_bytes", grant_from_nothing_and_from_inside_on_bytes},
      {"grant_in_the_turn_of_the_start", grant_in_the_turn_of_the_start},
      {"deadline_ends_a_read_that_holds_still", deadline_ends_a_read_that_holds_still},
      {"deadline_in_the_past", deadline_in_the_past},
      {"cancel_at_once", cancel_at_once},
      {"cancel_from_inside_on_bytes", cancel_from_inside_on_bytes},
      {"cancel_while_holding_still", cancel_while_holding_still},
      {"cancel_of_reads_at_many_moments", cancel_of_reads_at_many_moments},
      {"cancelled_writes_leave_a_whole_object_or_none",
       cancelled_writes_leave_a_whole_object_or_none},
      {"letting_go_of_the_handle_does_not_cancel", letting_go_of_the_handle_does_not_cancel}};
}

}  // namespace objectcache::store::conformance
