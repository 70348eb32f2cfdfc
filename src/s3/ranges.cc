#include "s3/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace objectcache::s3 {
namespace {

// Digits only, no sign, no spaces, no overflow.
std::optional<std::uint64_t> parse_u64(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "a-b" with a <= b, and a length that fits.
std::optional<ByteRange> parse_first_last(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == text.npos) return std::nullopt;
  const auto first = parse_u64(text.substr(0, dash));
  const auto last = parse_u64(text.substr(dash + 1));
  if (!first || !last || *last < *first || *last == UINT64_MAX) return std::nullopt;
  return ByteRange{.offset = *first, .length = *last - *first + 1};
}

bool starts_with_bytes_unit(std::string_view text) {
  static constexpr std::string_view kUnit = "bytes";
  return text.size() > kUnit.size() &&
         std::equal(kUnit.begin(), kUnit.end(), text.begin(),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
}

}  // namespace

std::string format_range(ByteRange range) {
  return fmt::format("bytes={}-{}", range.offset, range.offset + range.length - 1);
}

std::optional<ContentRange> parse_content_range(std::string_view value) {
  if (!starts_with_bytes_unit(value) || value[5] != ' ') return std::nullopt;
  value.remove_prefix(6);
  const std::size_t slash = value.find('/');
  if (slash == value.npos) return std::nullopt;
  const std::string_view range = value.substr(0, slash);
  const std::string_view total = value.substr(slash + 1);
  ContentRange out;
  if (total != "*") {
    out.object_bytes = parse_u64(total);
    if (!out.object_bytes) return std::nullopt;
  }
  if (range == "*") {
    if (!out.object_bytes) return std::nullopt;
    return out;
  }
  out.range = parse_first_last(range);
  if (!out.range) return std::nullopt;
  if (out.object_bytes && out.range->offset + out.range->length > *out.object_bytes) {
    return std::nullopt;
  }
  return out;
}

std::string format_content_range(ByteRange range, std::uint64_t object_bytes) {
  return fmt::format("bytes {}-{}/{}", range.offset, range.offset + range.length - 1, object_bytes);
}

RangeAnswer judge_range_answer(ByteRange asked, int status,
                               std::optional<std::string_view> content_range,
                               std::optional<std::uint64_t> content_length) {
  if (!content_range) {
    return {.verdict = status == 200 ? RangeVerdict::kRangeIgnored : RangeVerdict::kContradictory,
            .object_bytes = {}};
  }
  const auto told = parse_content_range(*content_range);
  if ((status != 200 && status != 206) || !told || !told->range) return {};
  if (content_length && *content_length != told->range->length) return {};
  RangeAnswer out{.verdict = RangeVerdict::kContradictory, .object_bytes = told->object_bytes};
  if (*told->range == asked) {
    out.verdict = RangeVerdict::kExact;
  } else if (told->range->offset == asked.offset && told->range->length < asked.length &&
             told->object_bytes &&
             told->range->offset + told->range->length == *told->object_bytes) {
    out.verdict = RangeVerdict::kObjectShorter;
  }
  return out;
}

RangeRequest parse_range(std::string_view value, std::uint64_t object_bytes) {
  using Kind = RangeRequest::Kind;
  const RangeRequest whole{.kind = Kind::kWhole, .range = {.offset = 0, .length = object_bytes}};
  if (!starts_with_bytes_unit(value) || value[5] != '=') return whole;
  value.remove_prefix(6);
  if (value.find(',') != value.npos) return {.kind = Kind::kMultiple, .range = {}};
  const std::size_t dash = value.find('-');
  if (dash == value.npos) return whole;
  if (dash == 0) {  // the last N bytes
    const auto count = parse_u64(value.substr(1));
    if (!count) return whole;
    if (*count == 0 || object_bytes == 0) return {.kind = Kind::kUnsatisfiable, .range = {}};
    const std::uint64_t length = std::min(*count, object_bytes);
    return {.kind = Kind::kPart, .range = {.offset = object_bytes - length, .length = length}};
  }
  const auto first = parse_u64(value.substr(0, dash));
  if (!first) return whole;
  std::uint64_t last = UINT64_MAX;
  if (dash + 1 < value.size()) {
    const auto parsed = parse_u64(value.substr(dash + 1));
    if (!parsed || *parsed < *first) return whole;
    last = *parsed;
  }
  if (*first >= object_bytes) return {.kind = Kind::kUnsatisfiable, .range = {}};
  last = std::min(last, object_bytes - 1);
  return {.kind = Kind::kPart, .range = {.offset = *first, .length = last - *first + 1}};
}

}  // namespace objectcache::s3
