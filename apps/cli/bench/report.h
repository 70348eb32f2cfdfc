#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/console.h"

namespace objectcache::cli {

/// The result of one bench: {"bench", "commit", "machine", "params", "rows": [...]}, rows flat,
/// field names with their units. For people the same rows as a table.
class BenchReport {
 public:
  BenchReport(std::string bench, nlohmann::ordered_json params)
      : bench_(std::move(bench)), params_(std::move(params)) {}

  void add(nlohmann::ordered_json row) { rows_.push_back(std::move(row)); }
  /// A remark printed under the table and kept in the JSON as "notes".
  void note(std::string text) { notes_.push_back(std::move(text)); }
  void print(Console& console) const;

 private:
  std::string bench_;
  nlohmann::ordered_json params_;
  std::vector<nlohmann::ordered_json> rows_;
  std::vector<std::string> notes_;
};

/// The rows as a table with one column a field; a field missing in a row stays blank.
[[nodiscard]] std::string format_table(const std::vector<nlohmann::ordered_json>& rows);

/// CPU model, cores, memory, kernel.
[[nodiscard]] nlohmann::ordered_json describe_machine();

/// The value below which the share `q` (0 to 1) of the sample lies, by linear interpolation. The
/// sample must not be empty.
[[nodiscard]] double quantile(std::vector<double> sample, double q);
[[nodiscard]] inline double median(std::vector<double> sample) {
  return quantile(std::move(sample), 0.5);
}

}  // namespace objectcache::cli
