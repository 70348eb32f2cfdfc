#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/url.h"
#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache {

// The values of options, as people write them. Each is total over any text; the errors say what
// would be right, but not which option: the caller knows.

/// "250ms", "1.5s", "0"; units ns, us, ms, s, min, h, d. At most 100 years.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);
/// "4096", "64MiB", "1.5GB"; units B, kB, MB, GB, TB (of 1,000) and KiB, MiB, GiB, TiB, in any
/// case.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
/// Bytes per second of "3.1gbit", "800Mbit", "400kbit" (bits per second, of 1,000) or "1.2GB/s",
/// "500MiB/s"; in any case.
[[nodiscard]] Result<double> parse_rate(std::string_view text);
/// "on", "true", "yes", "1" and their opposites.
[[nodiscard]] Result<bool> parse_flag(std::string_view text);
/// A whole number in decimal digits.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text);

/// The one of `known` that `name` was probably meant to be; empty if none is near.
[[nodiscard]] std::string_view nearest_name(std::string_view name,
                                            const std::vector<std::string_view>& known);

/// Reads parameters by name into options and then refuses, by name, whatever no one asked for:
///
///   ParameterReader in(url.parameters);
///   in.duration("timeout", options.timeout);
///   in.choice("durability", {{"none", kNone}, {"fsync", kFsync}}, options.durability);
///   if (auto done = in.finish(); !done) return std::unexpected(done.error());
///
/// A target keeps its value where the parameter is absent. The first error is kept for finish().
///
/// Threads: one. The parameters and the names asked for must outlive it.
class ParameterReader {
 public:
  explicit ParameterReader(const std::vector<UrlParameter>& parameters);

  /// Not repeated in errors: it may be a secret.
  void text(std::string_view name, std::string& target);
  void text(std::string_view name, std::optional<std::string>& target);
  void duration(std::string_view name, Duration& target);
  void size(std::string_view name, std::uint64_t& target);
  void rate(std::string_view name, double& bytes_per_second);
  void flag(std::string_view name, bool& target);
  template <class T>
  void count(std::string_view name, std::uint64_t min, std::uint64_t max, T& target) {
    if (const auto value = counted(name, min, max)) target = static_cast<T>(*value);
  }
  template <class T>
  void choice(std::string_view name, std::initializer_list<std::pair<std::string_view, T>> choices,
              T& target) {
    const std::string* value = take(name);
    if (value == nullptr) return;
    std::vector<std::string_view> names;
    for (const auto& [choice_name, choice_value] : choices) {
      if (*value == choice_name) {
        target = choice_value;
        return;
      }
      names.push_back(choice_name);
    }
    refuse_choice(name, *value, names);
  }
  /// Records an error about a parameter that was read.
  void refuse(std::string_view name, std::string message);
  /// Was it given? Does not count as reading it.
  [[nodiscard]] bool has(std::string_view name) const;

  /// kInvalidArgument: the first bad value, else the first parameter that was not asked for.
  [[nodiscard]] Result<void> finish() const;

 private:
  /// Null if it was not given. Notes that `name` is known.
  const std::string* take(std::string_view name);
  std::optional<std::uint64_t> counted(std::string_view name, std::uint64_t min, std::uint64_t max);
  void refuse_choice(std::string_view name, const std::string& value,
                     const std::vector<std::string_view>& choices);
  template <class T>
  void parsed(std::string_view name, Result<T> (*parse)(std::string_view), T& target);

  const std::vector<UrlParameter>& parameters_;
  std::vector<std::string_view> known_;
  std::optional<Error> error_;
};

}  // namespace objectcache
