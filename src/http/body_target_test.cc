#include "http/body_target.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace objectcache::http {
namespace {

using Verdict = BodyTarget::Verdict;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Fills as a socket would that gives at most `step` bytes a call.
void fill(BodyTarget& target, std::string_view text, std::size_t step, std::size_t buffers_max) {
  std::vector<iovec> buffers(buffers_max);
  while (!text.empty()) {
    const auto space = target.next(buffers, step);
    ASSERT_GT(space.bytes, 0U);
    ASSERT_LE(space.bytes, step);
    std::size_t left = space.bytes;
    for (std::size_t i = 0; i < space.buffers; ++i) {
      std::memcpy(buffers[i].iov_base, text.data(), buffers[i].iov_len);
      text.remove_prefix(buffers[i].iov_len);
      left -= buffers[i].iov_len;
    }
    ASSERT_EQ(left, 0U);
    target.advance(space.bytes);
  }
}

TEST(BodyTarget, FillsSegmentsInOrderWhateverTheSteps) {
  const std::string text = "abcdefghijklmnop";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    for (const std::size_t buffers : {1UL, 2UL, 8UL}) {
      std::array<char, 3> a{};
      std::array<char, 1> b{};
      std::array<char, 12> c{};
      BodyTarget target;
      BodyPlan plan{.kind = BodyPlan::Kind::kSegments, .segments = {}, .bytes_max = 0};
      plan.segments = {std::as_writable_bytes(std::span(a)), Segment{},
                       std::as_writable_bytes(std::span(b)), std::as_writable_bytes(std::span(c))};
      ASSERT_TRUE(target.start(plan, BodyFraming::kLength, 16));
      fill(target, text, step, buffers);
      EXPECT_EQ(target.remaining(), 0U);
      ASSERT_TRUE(target.finish());
      EXPECT_EQ(std::string(a.data(), 3) + b[0] + std::string(c.data(), 12), text);
    }
  }
}

TEST(BodyTarget, CopiesAndFillsInTurn) {
  std::array<char, 8> out{};
  BodyTarget target;
  BodyPlan plan{.kind = BodyPlan::Kind::kSegments, .segments = {}, .bytes_max = 0};
  plan.segments = {std::as_writable_bytes(std::span(out))};
  ASSERT_TRUE(target.start(plan, BodyFraming::kLength, 8));
  ASSERT_EQ(target.put(bytes_of("abc")), Verdict::kReadOn);
  fill(target, "defgh", 2, 1);
  EXPECT_FALSE(target.put(bytes_of("i"))) << "longer than announced";
  EXPECT_EQ(std::string(out.data(), 8), "abcdefgh");
}

TEST(BodyTarget, RefusesAnotherSizeThanTheSegments) {
  std::array<char, 8> out{};
  BodyPlan plan{.kind = BodyPlan::Kind::kSegments, .segments = {}, .bytes_max = 0};
  plan.segments = {std::as_writable_bytes(std::span(out))};
  BodyTarget target;
  for (const std::uint64_t length : {0UL, 7UL, 9UL, UINT64_MAX}) {
    const auto verdict = target.start(plan, BodyFraming::kLength, length);
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().code, ErrorCode::kCorrupt);
  }
  // Chunked: the size shows at the end only.
  ASSERT_TRUE(target.start(plan, BodyFraming::kChunked, std::nullopt));
  ASSERT_TRUE(target.put(bytes_of("abcdefg")));
  EXPECT_EQ(target.finish().error().code, ErrorCode::kCorrupt);
  ASSERT_TRUE(target.start(plan, BodyFraming::kChunked, std::nullopt));
  EXPECT_EQ(target.put(bytes_of("abcdefghi")).error().code, ErrorCode::kCorrupt);
  ASSERT_TRUE(target.start(plan, BodyFraming::kChunked, std::nullopt));
  ASSERT_TRUE(target.put(bytes_of("abcdefgh")));
  EXPECT_TRUE(target.finish());
}

TEST(BodyTarget, CollectsUpToItsLimit) {
  BodyTarget target;
  const BodyPlan plan{.kind = BodyPlan::Kind::kCollect, .segments = {}, .bytes_max = 5};
  ASSERT_TRUE(target.start(plan, BodyFraming::kLength, 5));
  ASSERT_TRUE(target.put(bytes_of("ab")));
  fill(target, "cde", 10, 4);
  EXPECT_EQ(target.finish(), "abcde");
  ASSERT_TRUE(target.start(plan, BodyFraming::kChunked, std::nullopt));
  ASSERT_TRUE(target.put(bytes_of("abc")));
  ASSERT_TRUE(target.put(bytes_of("de")));
  EXPECT_EQ(target.put(bytes_of("f")).error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(target.start(plan, BodyFraming::kLength, 6).error().code, ErrorCode::kLimitExceeded);
  ASSERT_TRUE(target.start(plan, BodyFraming::kUntilClose, std::nullopt));
  ASSERT_TRUE(target.put(bytes_of("xy")));
  EXPECT_EQ(target.finish(), "xy");
  ASSERT_TRUE(target.start(plan, BodyFraming::kNone, 100));
  EXPECT_EQ(target.finish(), "");
}

TEST(BodyTarget, DiscardsUpToItsLimitThenCloses) {
  BodyTarget target;
  const BodyPlan plan{.kind = BodyPlan::Kind::kDiscard, .segments = {}, .bytes_max = 5};
  EXPECT_EQ(target.start(plan, BodyFraming::kLength, 5), Verdict::kReadOn);
  EXPECT_EQ(target.start(plan, BodyFraming::kLength, 6), Verdict::kCloseHere);
  EXPECT_EQ(target.start(plan, BodyFraming::kChunked, std::nullopt), Verdict::kReadOn);
  EXPECT_EQ(target.put(bytes_of("abcde")), Verdict::kReadOn);
  EXPECT_EQ(target.put(bytes_of("f")), Verdict::kCloseHere);
  EXPECT_EQ(target.start({.kind = BodyPlan::Kind::kAbort, .segments = {}, .bytes_max = 0},
                         BodyFraming::kLength, 1),
            Verdict::kCloseHere);
}

TEST(BodyTarget, DetachedTouchesTheCallersMemoryNoMore) {
  std::array<char, 6> out{};
  BodyTarget target;
  BodyPlan plan{.kind = BodyPlan::Kind::kSegments, .segments = {}, .bytes_max = 0};
  plan.segments = {std::as_writable_bytes(std::span(out))};
  ASSERT_TRUE(target.start(plan, BodyFraming::kLength, 6));
  fill(target, "ab", 10 - 8, 1);
  target.detach();
  EXPECT_FALSE(target.fills_segments());
  EXPECT_EQ(target.remaining(), 4U);
  fill(target, "cdef", 4, 4);
  EXPECT_TRUE(target.finish());
  EXPECT_EQ(std::string(out.data(), 6), std::string("ab\0\0\0\0", 6));
}

}  // namespace
}  // namespace objectcache::http
