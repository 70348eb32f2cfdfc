#include "s3/http_date.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace objectcache::s3 {
namespace {

using std::chrono::days;
using std::chrono::seconds;
using std::chrono::sys_days;

constexpr std::string_view kWeekdays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct Fields {
  int year = 0;
  unsigned month = 0;  // 1 to 12
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  unsigned millisecond = 0;
  unsigned weekday = 0;  // Sunday is 0
};

Fields fields_of(WallTime time) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto day = std::chrono::floor<days>(ms);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(ms - day);
  return {.year = static_cast<int>(date.year()),
          .month = static_cast<unsigned>(date.month()),
          .day = static_cast<unsigned>(date.day()),
          .hour = static_cast<unsigned>(clock.hours().count()),
          .minute = static_cast<unsigned>(clock.minutes().count()),
          .second = static_cast<unsigned>(clock.seconds().count()),
          .millisecond = static_cast<unsigned>(clock.subseconds().count()),
          .weekday = std::chrono::weekday(day).c_encoding()};
}

std::optional<WallTime> time_of(const Fields& f) {
  const std::chrono::year_month_day date{std::chrono::year(f.year), std::chrono::month(f.month),
                                         std::chrono::day(f.day)};
  // Years beyond these overflow the nanoseconds of the clock. A leap second counts as the last
  // ordinary one.
  if (!date.ok() || f.year < 1700 || f.year > 2200) return std::nullopt;
  if (f.hour > 23 || f.minute > 59 || f.second > 60) return std::nullopt;
  return WallTime(sys_days(date)) + std::chrono::hours(f.hour) + std::chrono::minutes(f.minute) +
         seconds(std::min(f.second, 59U)) + std::chrono::milliseconds(f.millisecond);
}

// Takes fixed pieces off the front of a text; after a failure it stays failed.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  unsigned digits(std::size_t count) {
    unsigned value = 0;
    if (rest_.size() < count) return failed();
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return failed();
      value = value * 10 + static_cast<unsigned>(c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }
  void literal(std::string_view expected) {
    if (!take(expected)) failed();
  }
  bool take(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  template <std::size_t N>
  unsigned one_of(const std::string_view (&names)[N]) {
    for (unsigned i = 0; i < N; ++i) {
      if (take(names[i])) return i;
    }
    return failed();
  }
  // Skips digits after the first three, whose value in milliseconds it returns.
  unsigned fraction_ms() {
    unsigned value = 0;
    unsigned weight = 100;
    std::size_t count = 0;
    while (count < rest_.size() && rest_[count] >= '0' && rest_[count] <= '9') {
      value += weight * static_cast<unsigned>(rest_[count] - '0');
      weight /= 10;
      ++count;
    }
    if (count == 0 || count > 12) return failed();
    rest_.remove_prefix(count);
    return value;
  }
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }

 private:
  unsigned failed() {
    ok_ = false;
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

AmzDate format_amz_date(WallTime time) {
  const Fields f = fields_of(time);
  AmzDate out;
  fmt::format_to_n(out.text.data(), out.text.size(), "{:04}{:02}{:02}T{:02}{:02}{:02}Z", f.year,
                   f.month, f.day, f.hour, f.minute, f.second);
  return out;
}

std::optional<WallTime> parse_amz_date(std::string_view text) {
  Scanner in(text);
  Fields f;
  f.year = static_cast<int>(in.digits(4));
  f.month = in.digits(2);
  f.day = in.digits(2);
  in.literal("T");
  f.hour = in.digits(2);
  f.minute = in.digits(2);
  f.second = in.digits(2);
  in.literal("Z");
  if (!in.done()) return std::nullopt;
  return time_of(f);
}

std::string format_http_date(WallTime time) {
  const Fields f = fields_of(time);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kWeekdays[f.weekday], f.day,
                     kMonths[f.month - 1], f.year, f.hour, f.minute, f.second);
}

std::optional<WallTime> parse_http_date(std::string_view text) {
  Scanner in(text);
  Fields f;
  // A wrong day of the week is some server's defect, not a reason to lose the time.
  in.one_of(kWeekdays);
  in.literal(", ");
  f.day = in.digits(2);
  in.literal(" ");
  f.month = in.one_of(kMonths) + 1;
  in.literal(" ");
  f.year = static_cast<int>(in.digits(4));
  in.literal(" ");
  f.hour = in.digits(2);
  in.literal(":");
  f.minute = in.digits(2);
  in.literal(":");
  f.second = in.digits(2);
  in.literal(" GMT");
  if (!in.done()) return std::nullopt;
  return time_of(f);
}

std::string format_iso8601(WallTime time) {
  const Fields f = fields_of(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", f.year, f.month, f.day, f.hour,
                     f.minute, f.second, f.millisecond);
}

std::optional<WallTime> parse_iso8601(std::string_view text) {
  Scanner in(text);
  Fields f;
  f.year = static_cast<int>(in.digits(4));
  in.literal("-");
  f.month = in.digits(2);
  in.literal("-");
  f.day = in.digits(2);
  in.literal("T");
  f.hour = in.digits(2);
  in.literal(":");
  f.minute = in.digits(2);
  in.literal(":");
  f.second = in.digits(2);
  if (in.take(".")) f.millisecond = in.fraction_ms();
  if (!in.take("+00:00")) in.literal("Z");
  if (!in.done()) return std::nullopt;
  return time_of(f);
}

}  // namespace objectcache::s3
