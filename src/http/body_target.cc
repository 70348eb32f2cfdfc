#include "http/body_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace objectcache::http {

namespace {

constexpr std::size_t kScratchBytes = 16 * 1024;

std::unexpected<Error> wrong_size(std::string what) {
  return fail(ErrorCode::kCorrupt, std::move(what), "read answer");
}

std::unexpected<Error> too_large(std::uint64_t bytes_max) {
  return fail(ErrorCode::kLimitExceeded,
              fmt::format("the body of the answer exceeds {} bytes", bytes_max), "read answer");
}

std::uint64_t sum_of(const std::vector<Segment>& segments) {
  std::uint64_t sum = 0;
  for (const Segment& segment : segments) sum += segment.size();
  return sum;
}

}  // namespace

Result<BodyTarget::Verdict> BodyTarget::start(BodyPlan plan, BodyFraming framing,
                                              std::optional<std::uint64_t> content_length) {
  plan_ = std::move(plan);
  placed_ = 0;
  segment_ = segment_offset_ = 0;
  collected_.clear();
  expected_.reset();
  if (framing == BodyFraming::kNone) expected_ = 0;
  if (framing == BodyFraming::kLength) expected_ = content_length.value_or(0);

  switch (plan_.kind) {
    case BodyPlan::Kind::kAbort:
      return Verdict::kCloseHere;
    case BodyPlan::Kind::kSegments: {
      const std::uint64_t wanted = sum_of(plan_.segments);
      if (expected_ && *expected_ != wanted) {
        return wrong_size(fmt::format("the server announced a body of {} bytes where {} are right",
                                      *expected_, wanted));
      }
      break;
    }
    case BodyPlan::Kind::kCollect:
      if (!expected_) break;
      if (*expected_ > plan_.bytes_max) return too_large(plan_.bytes_max);
      collected_.resize(static_cast<std::size_t>(*expected_));
      plan_.segments = {std::as_writable_bytes(std::span(collected_))};
      break;
    case BodyPlan::Kind::kDiscard:
      if (expected_ && *expected_ > plan_.bytes_max) return Verdict::kCloseHere;
      break;
  }
  return Verdict::kReadOn;
}

std::optional<std::uint64_t> BodyTarget::remaining() const {
  if (!expected_) return std::nullopt;
  return *expected_ - placed_;
}

BodyTarget::Space BodyTarget::next(std::span<iovec> out, std::uint64_t limit) {
  limit = std::min(limit, *expected_ - placed_);
  Space space;
  if (plan_.kind == BodyPlan::Kind::kDiscard) {
    if (!scratch_) scratch_ = std::make_unique<std::byte[]>(kScratchBytes);
    space.bytes = static_cast<std::size_t>(std::min<std::uint64_t>(limit, kScratchBytes));
    out[space.buffers++] = {scratch_.get(), space.bytes};
    return space;
  }
  std::size_t offset = segment_offset_;
  for (std::size_t i = segment_; i < plan_.segments.size() && space.buffers < out.size(); ++i) {
    const Segment part = plan_.segments[i].subspan(offset);
    offset = 0;
    const std::size_t bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), limit - space.bytes));
    if (bytes == 0) {
      if (part.empty()) continue;
      break;
    }
    out[space.buffers++] = {part.data(), bytes};
    space.bytes += bytes;
  }
  return space;
}

void BodyTarget::advance(std::size_t bytes) {
  placed_ += bytes;
  if (plan_.kind == BodyPlan::Kind::kDiscard) return;
  segment_offset_ += bytes;
  while (segment_ < plan_.segments.size() && segment_offset_ >= plan_.segments[segment_].size()) {
    segment_offset_ -= plan_.segments[segment_].size();
    ++segment_;
  }
}

Result<BodyTarget::Verdict> BodyTarget::put(std::span<const std::byte> data) {
  if (expected_ && data.size() > *expected_ - placed_) {
    return wrong_size(fmt::format("the body is longer than the {} bytes announced", *expected_));
  }
  if (plan_.kind == BodyPlan::Kind::kDiscard) {
    placed_ += data.size();
    return placed_ > plan_.bytes_max ? Verdict::kCloseHere : Verdict::kReadOn;
  }
  if (plan_.kind == BodyPlan::Kind::kCollect && !expected_) {
    if (data.size() > plan_.bytes_max - placed_) return too_large(plan_.bytes_max);
    collected_.append(reinterpret_cast<const char*>(data.data()), data.size());
    placed_ += data.size();
    return Verdict::kReadOn;
  }
  while (!data.empty()) {
    if (segment_ == plan_.segments.size()) {
      return wrong_size(fmt::format("the body is longer than the {} bytes wanted", placed_));
    }
    const Segment part = plan_.segments[segment_].subspan(segment_offset_);
    const std::size_t bytes = std::min(part.size(), data.size());
    if (bytes > 0) std::memcpy(part.data(), data.data(), bytes);
    data = data.subspan(bytes);
    advance(bytes);
  }
  return Verdict::kReadOn;
}

Result<std::string> BodyTarget::finish() {
  const std::uint64_t wanted = plan_.kind == BodyPlan::Kind::kSegments
                                   ? sum_of(plan_.segments)
                                   : expected_.value_or(placed_);
  const std::uint64_t placed = placed_;
  std::string body = std::move(collected_);
  plan_ = BodyPlan{};
  collected_.clear();
  if (placed != wanted) {
    return wrong_size(fmt::format("the body ended after {} of {} bytes", placed, wanted));
  }
  return body;
}

void BodyTarget::detach() {
  plan_ = BodyPlan{};
  plan_.bytes_max = UINT64_MAX;
  collected_.clear();
}

}  // namespace objectcache::http
