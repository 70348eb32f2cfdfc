#include "cli/bench/read_workload.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/files.h"

namespace objectcache::cli {
namespace {

constexpr std::uint64_t kFileBytesMax = 256U << 20;
constexpr std::uint64_t kLengthMax = 1ULL << 30;

template <class Number>
bool parse_number(std::string_view text, Number& out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && end == text.data() + text.size();
}

/// The words of a line; at most `count`, the last one keeps its blanks.
std::vector<std::string_view> split(std::string_view line, std::size_t count) {
  std::vector<std::string_view> out;
  while (out.size() + 1 < count) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) break;
    out.push_back(line.substr(0, blank));
    line.remove_prefix(blank + 1);
  }
  out.push_back(line);
  return out;
}

bool take_object(std::string_view value, ReadWorkload& out) {
  const auto words = split(value, 4);
  if (words.size() != 4) return false;
  out.objects.push_back({.key = std::string(words[0]),
                         .path = std::string(words[1]),
                         .amz_date = std::string(words[2]),
                         .authorization = std::string(words[3])});
  return true;
}

bool take_range(std::string_view value, ReadWorkload& out) {
  const auto words = split(value, 3);
  ReadWorkload::Range range;
  if (words.size() != 3 || !parse_number(words[0], range.object) ||
      !parse_number(words[1], range.offset) || !parse_number(words[2], range.crc32c, 16) ||
      range.object >= out.objects.size()) {
    return false;
  }
  out.ranges.push_back(range);
  return true;
}

bool take_line(std::string_view name, std::string_view value, ReadWorkload& out) {
  const auto text = [&](std::string& field) {
    field = value;
    return true;
  };
  if (name == "url") return text(out.url);
  if (name == "host") return text(out.host);
  if (name == "port") return parse_number(value, out.port);
  if (name == "tls") {
    out.tls = value == "1";
    return value == "0" || value == "1";
  }
  if (name == "ca") return text(out.ca_file);
  if (name == "bucket") return text(out.bucket);
  if (name == "prefix") return text(out.key_prefix);
  if (name == "region") return text(out.region);
  if (name == "connections") return parse_number(value, out.connections) && out.connections > 0;
  if (name == "length") {
    return parse_number(value, out.length) && out.length > 0 && out.length <= kLengthMax;
  }
  if (name == "warm_up") return parse_number(value, out.warm_up);
  if (name == "object") return take_object(value, out);
  if (name == "range") return take_range(value, out);
  return false;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string format_workload(const ReadWorkload& workload) {
  std::string out = fmt::format(
      "url {}\nhost {}\nport {}\ntls {}\nca {}\nbucket {}\nprefix {}\nregion {}\nconnections {}\n"
      "length {}\nwarm_up {}\n",
      workload.url, workload.host, workload.port, workload.tls ? 1 : 0, workload.ca_file,
      workload.bucket, workload.key_prefix, workload.region, workload.connections, workload.length,
      workload.warm_up);
  for (const auto& object : workload.objects) {
    out += fmt::format("object {} {} {} {}\n", object.key, object.path, object.amz_date,
                       object.authorization);
  }
  for (const auto& range : workload.ranges) {
    out += fmt::format("range {} {} {:08x}\n", range.object, range.offset, range.crc32c);
  }
  return out;
}

Result<ReadWorkload> parse_workload(std::string_view text) {
  ReadWorkload out;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view value = line.substr(std::min(blank + 1, line.size()));
    if (!take_line(line.substr(0, blank), value, out)) {
      return fail(ErrorCode::kInvalidArgument, fmt::format("line {} is not understood", number),
                  "read workload");
    }
  }
  if (out.length == 0 || out.ranges.empty() || out.warm_up >= out.ranges.size()) {
    return fail(ErrorCode::kInvalidArgument, "it names no ranges to measure", "read workload");
  }
  return out;
}

Result<ReadWorkload> read_workload_file(const std::string& path) {
  auto text = read_file(path, kFileBytesMax);
  if (!text) return std::unexpected(std::move(text.error()));
  return parse_workload(*text);
}

std::string format_client_result(const ClientResult& result) {
  return fmt::format("{{\"bytes\": {}, \"seconds\": {:.6f}, \"cpu_s\": {:.6f}}}\n", result.bytes,
                     result.seconds, result.cpu_s);
}

Result<ClientResult> parse_client_result(std::string_view output) {
  while (output.ends_with('\n')) output.remove_suffix(1);
  const std::size_t line = output.rfind('\n');
  if (line != std::string_view::npos) output.remove_prefix(line + 1);
  const auto json = nlohmann::json::parse(output, nullptr, false);
  const auto number = [&](const char* name) -> std::optional<double> {
    if (!json.is_object() || !json.contains(name) || !json[name].is_number()) return std::nullopt;
    return json[name].get<double>();
  };
  const auto bytes = number("bytes");
  const auto seconds = number("seconds");
  const auto cpu_s = number("cpu_s");
  if (!bytes || !seconds || !cpu_s || !(*bytes > 0) || !(*seconds > 0) || !(*cpu_s >= 0)) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("the client printed no result: {}", output.substr(0, 200)), "run");
  }
  return ClientResult{static_cast<std::uint64_t>(*bytes), *seconds, *cpu_s};
}

double process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

ClientMeter::ClientMeter() : wall_(wall_seconds()), cpu_(process_cpu_seconds()) {}

ClientResult ClientMeter::read(std::uint64_t bytes) const {
  return {bytes, wall_seconds() - wall_, process_cpu_seconds() - cpu_};
}

}  // namespace objectcache::cli
