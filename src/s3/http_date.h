#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace objectcache::s3 {

/// Seconds and better since 1970 in UTC; all dates of S3 are UTC.
using WallTime = std::chrono::system_clock::time_point;

/// "20130524T000000Z", the form that signatures use, without a terminator.
struct AmzDate {
  std::array<char, 16> text{};
  [[nodiscard]] std::string_view view() const { return {text.data(), text.size()}; }
  /// "20130524", the day that a signing key is valid for.
  [[nodiscard]] std::string_view day() const { return {text.data(), 8}; }
};
/// Fractions of a second are cut off. Requires a year from 1 to 9999.
[[nodiscard]] AmzDate format_amz_date(WallTime time);
[[nodiscard]] std::optional<WallTime> parse_amz_date(std::string_view text);

/// "Fri, 24 May 2013 00:00:00 GMT" (RFC 7231, IMF-fixdate); the two obsolete forms are refused.
[[nodiscard]] std::string format_http_date(WallTime time);
[[nodiscard]] std::optional<WallTime> parse_http_date(std::string_view text);

/// "2013-05-24T00:00:00.000Z", the form of listings.
[[nodiscard]] std::string format_iso8601(WallTime time);
/// Reads it with any number of digits of fraction, with none, and with "+00:00" for "Z".
[[nodiscard]] std::optional<WallTime> parse_iso8601(std::string_view text);

}  // namespace objectcache::s3
