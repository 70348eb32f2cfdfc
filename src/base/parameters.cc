#include "base/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

namespace objectcache {
namespace {

struct Unit {
  std::string_view name;  // Lower case.
  double factor;
};

std::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// Values come from people and may be long or odd: a message shows only a little of them.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? out + "..." : out;
}

/// A plain decimal number (digits, at most one '.') and the text behind it.
std::optional<std::pair<double, std::string_view>> split_number(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) ++end;
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + end, value);
  if (end == 0 || end > 40 || error != std::errc() || stop != text.data() + end) return {};
  return std::pair{value, text.substr(end)};
}

/// The number times its unit, if the unit is known and the product is at most `max`.
std::optional<double> scaled(std::string_view text, std::span<const Unit> units, double max) {
  const auto number = split_number(text);
  if (!number) return {};
  const std::string name = lower(number->second);
  for (const Unit& unit : units) {
    if (unit.name == name) {
      const double value = number->first * unit.factor;
      return value <= max ? std::optional(value) : std::nullopt;
    }
  }
  return {};
}

constexpr std::array kSizes = {Unit{"", 1},         Unit{"b", 1},        Unit{"kb", 1e3},
                               Unit{"mb", 1e6},     Unit{"gb", 1e9},     Unit{"tb", 1e12},
                               Unit{"kib", 0x1p10}, Unit{"mib", 0x1p20}, Unit{"gib", 0x1p30},
                               Unit{"tib", 0x1p40}};
constexpr std::array kRates = {
    Unit{"bit", 1.0 / 8},   Unit{"kbit", 1e3 / 8}, Unit{"mbit", 1e6 / 8}, Unit{"gbit", 1e9 / 8},
    Unit{"tbit", 1e12 / 8}, Unit{"b/s", 1},        Unit{"kb/s", 1e3},     Unit{"mb/s", 1e6},
    Unit{"gb/s", 1e9},      Unit{"kib/s", 0x1p10}, Unit{"mib/s", 0x1p20}, Unit{"gib/s", 0x1p30}};
constexpr std::array kDurations = {Unit{"ns", 1},     Unit{"us", 1e3},   Unit{"ms", 1e6},
                                   Unit{"s", 1e9},    Unit{"min", 6e10}, Unit{"h", 3.6e12},
                                   Unit{"d", 8.64e13}};

/// How many single-letter changes part two names.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0U : 1U);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration(0);
  const auto value = scaled(text, kDurations, 3.2e18);
  if (!value)
    return bad(fmt::format("'{}' is not a time such as 250ms, 1.5s or 2min", shown(text)));
  return Duration(std::llround(*value));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  // Plain numbers are kept exact; a double has 53 bits.
  if (const auto count = parse_count(text)) return *count;
  const auto value = scaled(text, kSizes, 0x1p62);
  if (!value)
    return bad(fmt::format("'{}' is not a size such as 4096, 64MiB or 1.5GB", shown(text)));
  return static_cast<std::uint64_t>(std::llround(*value));
}

Result<double> parse_rate(std::string_view text) {
  const auto value = scaled(text, kRates, 1e18);
  if (!value || *value <= 0) {
    return bad(fmt::format("'{}' is not a rate such as 3.1gbit, 800mbit or 1.2GB/s", shown(text)));
  }
  return *value;
}

Result<bool> parse_flag(std::string_view text) {
  if (text == "on" || text == "true" || text == "yes" || text == "1") return true;
  if (text == "off" || text == "false" || text == "no" || text == "0") return false;
  return bad(fmt::format("'{}' is neither on nor off", shown(text)));
}

Result<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size()) {
    return bad(fmt::format("'{}' is not a whole number", shown(text)));
  }
  return value;
}

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(name.size() / 3, 2) + 1;
  if (name.size() > 256) return best;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance && distance < std::max(name.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

ParameterReader::ParameterReader(const std::vector<UrlParameter>& parameters)
    : parameters_(parameters) {}

const std::string* ParameterReader::take(std::string_view name) {
  known_.push_back(name);
  const auto it = std::ranges::find(parameters_, name, &UrlParameter::name);
  return it == parameters_.end() ? nullptr : &it->value;
}

bool ParameterReader::has(std::string_view name) const {
  return std::ranges::find(parameters_, name, &UrlParameter::name) != parameters_.end();
}

void ParameterReader::refuse(std::string_view name, std::string message) {
  if (error_) return;
  error_ = Error{.code = ErrorCode::kInvalidArgument,
                 .message = std::move(message),
                 .action = "read parameter",
                 .key = std::string(name),
                 .s3_code = {},
                 .request_id = {}};
}

template <class T>
void ParameterReader::parsed(std::string_view name, Result<T> (*parse)(std::string_view),
                             T& target) {
  const std::string* value = take(name);
  if (value == nullptr) return;
  auto result = parse(*value);
  if (result) {
    target = *result;
  } else {
    refuse(name, std::move(result.error().message));
  }
}

void ParameterReader::text(std::string_view name, std::string& target) {
  if (const std::string* value = take(name)) target = *value;
}
void ParameterReader::text(std::string_view name, std::optional<std::string>& target) {
  if (const std::string* value = take(name)) target = *value;
}
void ParameterReader::duration(std::string_view name, Duration& target) {
  parsed(name, &parse_duration, target);
}
void ParameterReader::size(std::string_view name, std::uint64_t& target) {
  parsed(name, &parse_size, target);
}
void ParameterReader::rate(std::string_view name, double& bytes_per_second) {
  parsed(name, &parse_rate, bytes_per_second);
}
void ParameterReader::flag(std::string_view name, bool& target) {
  parsed(name, &parse_flag, target);
}

std::optional<std::uint64_t> ParameterReader::counted(std::string_view name, std::uint64_t min,
                                                      std::uint64_t max) {
  const std::string* value = take(name);
  if (value == nullptr) return {};
  const auto count = parse_count(*value);
  if (count && *count >= min && *count <= max) return *count;
  refuse(name, fmt::format("'{}' is not a whole number from {} to {}", shown(*value), min, max));
  return {};
}

void ParameterReader::refuse_choice(std::string_view name, const std::string& value,
                                    const std::vector<std::string_view>& choices) {
  refuse(name, fmt::format("'{}' is none of: {}", shown(value), fmt::join(choices, ", ")));
}

Result<void> ParameterReader::finish() const {
  if (error_) return std::unexpected(*error_);
  for (const UrlParameter& parameter : parameters_) {
    if (std::ranges::find(known_, parameter.name) != known_.end()) continue;
    const std::string_view near = nearest_name(parameter.name, known_);
    std::string message = known_.empty()  ? "unknown; this store has no parameters"
                          : !near.empty() ? fmt::format("unknown; did you mean '{}'?", near)
                                          : fmt::format("unknown; the parameters here are: {}",
                                                        fmt::join(known_, ", "));
    return fail(ErrorCode::kInvalidArgument, std::move(message), "read parameter", parameter.name);
  }
  return {};
}

}  // namespace objectcache
