#include "cli/bench/report.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

namespace objectcache::cli {
namespace {

std::string cell_text(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    const double size = std::abs(number);
    return fmt::format("{:.{}f}", number,
                       size >= 1000 ? 0 : (size >= 100 ? 1 : (size >= 1 ? 2 : 3)));
  }
  return value.dump();
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name"))
      return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "unknown";
}

}  // namespace

std::string format_table(const std::vector<nlohmann::ordered_json>& rows) {
  std::vector<std::string> columns;
  for (const auto& row : rows) {
    for (const auto& [name, value] : row.items()) {
      if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
    }
  }
  std::vector<std::vector<std::string>> cells;
  std::vector<std::size_t> widths;
  for (const std::string& column : columns) widths.push_back(column.size());
  for (const auto& row : rows) {
    auto& line = cells.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      line.push_back(row.contains(columns[i]) ? cell_text(row[columns[i]]) : "");
      widths[i] = std::max(widths[i], line.back().size());
    }
  }
  std::string out;
  const auto add_line = [&](const std::vector<std::string>& line) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += i == 0 ? fmt::format("{:<{}}", line[i], widths[i])
                    : fmt::format("  {:>{}}", line[i], widths[i]);
    }
    out += '\n';
  };
  add_line(columns);
  for (const auto& line : cells) add_line(line);
  return out;
}

nlohmann::ordered_json describe_machine() {
  utsname name{};
  uname(&name);
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return {{"cpu", cpu_model()},
          {"cores", std::thread::hardware_concurrency()},
          {"memory_gib", std::round(static_cast<double>(pages * page_bytes) / (1 << 30))},
          {"kernel", std::string(name.sysname) + " " + name.release}};
}

void BenchReport::print(Console& console) const {
  console.progress_end();
  console.line(format_table(rows_));
  for (const std::string& text : notes_) console.line(text);
  console.document({{"bench", bench_},
                    {"commit", OBJECTCACHE_COMMIT},
                    {"machine", describe_machine()},
                    {"params", params_},
                    {"rows", rows_},
                    {"notes", notes_}});
}

double quantile(std::vector<double> sample, double q) {
  std::ranges::sort(sample);
  const double at = q * static_cast<double>(sample.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sample.size() - 1);
  return sample[below] + (sample[above] - sample[below]) * (at - static_cast<double>(below));
}

}  // namespace objectcache::cli
