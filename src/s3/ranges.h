#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace objectcache::s3 {

/// `length` bytes from `offset` on; length > 0 and the end fits in 64 bits.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// Value of a Range header: "bytes=0-1023".
[[nodiscard]] std::string format_range(ByteRange range);

/// A Content-Range header: "bytes 0-1023/4096", "bytes 0-1023/*", "bytes */4096".
struct ContentRange {
  std::optional<ByteRange> range;             ///< Empty: "bytes */N", goes with status 416.
  std::optional<std::uint64_t> object_bytes;  ///< Empty: '*'.
};
/// Empty if it is malformed or contradicts itself (last before first, range beyond the total).
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view value);
[[nodiscard]] std::string format_content_range(ByteRange range, std::uint64_t object_bytes);

/// What the answer to a GET with a Range header is worth.
enum class RangeVerdict : std::uint8_t {
  kExact,          ///< These are the bytes that were asked for.
  kObjectShorter,  ///< A true answer, but the object ends inside the range.
  kRangeIgnored,   ///< 200 without Content-Range: the whole object, or anything. Never usable.
  kContradictory,  ///< Content-Range is missing, malformed, another range, or disagrees with
                   ///< Content-Length. Never usable.
};
struct RangeAnswer {
  RangeVerdict verdict = RangeVerdict::kContradictory;
  std::optional<std::uint64_t> object_bytes;  ///< Size of the whole object, if told.
};
/// `status` must be 200 or 206; 206 and a 200 with the right Content-Range count the same, because
/// some servers answer so. `content_length` is empty for chunked answers.
[[nodiscard]] RangeAnswer judge_range_answer(ByteRange asked, int status,
                                             std::optional<std::string_view> content_range,
                                             std::optional<std::uint64_t> content_length);

/// How a server is to understand a Range header.
struct RangeRequest {
  enum class Kind : std::uint8_t {
    kWhole,          ///< Not a byte range: ignore the header, as RFC 7233 says.
    kPart,           ///< `range`, cut to the object's end.
    kUnsatisfiable,  ///< Answer 416.
    kMultiple,       ///< Several ranges.
  };
  Kind kind = Kind::kWhole;
  ByteRange range;
};
[[nodiscard]] RangeRequest parse_range(std::string_view value, std::uint64_t object_bytes);

}  // namespace objectcache::s3
