// The cpu bench: what the read path costs. Instructions are counted by callgrind, as the difference
// of two runs of different size, so that starting up and connecting drop out; seconds of CPU come
// from a run without it.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/bench/bench_space.h"
#include "cli/bench/benches.h"
#include "cli/bench/child_process.h"
#include "cli/bench/read_target.h"
#include "cli/bench/read_workload.h"
#include "cli/bench/report.h"

namespace objectcache::cli {
namespace {

constexpr const char* kValgrind = "/usr/bin/valgrind";
constexpr std::chrono::minutes kRunTimeout{10};
constexpr std::uint32_t kLayers = 32;  ///< And as many MiB a chunk.

std::map<std::string, std::string> aws_variables(const Environment& environment) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : environment.variables) {
    if (name.starts_with("AWS_")) out[name] = value;
  }
  return out;
}

/// "totals: 123" of a callgrind output file.
Result<std::uint64_t> read_total(const std::string& file) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view kName = "totals: ";
    if (!line.starts_with(kName)) continue;
    std::uint64_t value = 0;
    const char* end = line.data() + line.size();
    if (std::from_chars(line.data() + kName.size(), end, value).ptr == end) return value;
  }
  return fail(ErrorCode::kUnavailable, "callgrind wrote no total", "count instructions", file);
}

class CpuBench {
 public:
  CpuBench(const CpuOptions& options, Console& console)
      : options_(options),
        console_(console),
        mib_(options.common.small ? kLayers : std::max(options.mib, kLayers)),
        report_("cpu", {{"small", options.common.small}, {"mib", mib_}}) {}

  Result<void> run();

 private:
  Result<void> run_store(const std::string& url, const Environment& environment);
  Result<void> measure_ranges(const std::string& url, const Environment& environment,
                              std::uint32_t kib);
  Result<void> measure_stream(const std::string& url, const Environment& environment,
                              const std::string& scheme);
  Result<void> measure(const std::string& path, const std::string& scheme, double step_bytes,
                       const Environment& environment,
                       const std::function<std::vector<std::string>(bool large)>& arguments);
  Result<std::uint64_t> instructions(const std::vector<std::string>& arguments,
                                     const Environment& environment);

  const CpuOptions& options_;
  Console& console_;
  const std::uint32_t mib_;
  BenchReport report_;
  std::unique_ptr<ScratchFolder> folder_;
};

Result<void> CpuBench::run() {
  auto folder = ScratchFolder::create();
  if (!folder) return std::unexpected(std::move(folder.error()));
  folder_ = std::move(*folder);
  if (!is_program(kValgrind)) report_.note("missing: callgrind (valgrind is not installed)");
  if (options_.url.empty() && options_.url_tls.empty()) {
    report_.note("the store is the tests' server in memory");
    for (const bool tls : {false, true}) {
      const std::string tls_folder = tls ? (folder_->path() / "tls").string() : std::string();
      if (tls) std::filesystem::create_directories(tls_folder);
      auto server = start_test_server({.tls_folder = tls_folder});
      if (!server) return std::unexpected(std::move(server.error()));
      const Environment environment =
          with_variables(options_.common.environment, server->credentials);
      if (auto ok = run_store(server->url, environment); !ok) return ok;
    }
  }
  for (const std::string& url : {options_.url, options_.url_tls}) {
    if (url.empty()) continue;
    if (auto ok = run_store(url, options_.common.environment); !ok) return ok;
  }
  report_.print(console_);
  return {};
}

Result<void> CpuBench::run_store(const std::string& url, const Environment& environment) {
  for (const std::uint32_t kib : {256U, 1024U}) {
    if (auto ok = measure_ranges(url, environment, kib); !ok) return ok;
    if (options_.common.small) break;
  }
  return measure_stream(url, environment,
                        url.find("endpoint=https") == std::string::npos ? "http" : "https");
}

Result<void> CpuBench::measure_ranges(const std::string& url, const Environment& environment,
                                      std::uint32_t kib) {
  auto target = ReadTarget::create(url, environment, 1);
  if (!target) return std::unexpected(std::move(target.error()));
  auto store = BenchStore::open(url, environment);
  if (!store) return std::unexpected(std::move(store.error()));
  if (auto ok = target->put(*store); !ok) return ok;
  target->sign();
  const auto file = [&](bool large) {
    std::string path = (folder_->path() / (large ? "large" : "small")).string();
    std::ofstream(path) << format_workload(
        target->workload({.range_kib = kib, .connections = 4, .mib = large ? 2 * mib_ : mib_}, 1));
    return path;
  };
  const std::vector<std::string> files{file(false), file(true)};
  auto ok =
      measure(fmt::format("ranges of {} KiB", kib), target->scheme(),
              static_cast<double>(mib_) * (1 << 20), environment, [&](bool large) {
                return std::vector<std::string>{"bench", "store-read-client", files[large ? 1 : 0]};
              });
  if (!ok) return ok;
  return store->remove_all();
}

Result<void> CpuBench::measure_stream(const std::string& url, const Environment& environment,
                                      const std::string& scheme) {
  const std::uint32_t chunks = std::max(1U, std::min(mib_, 256U) / kLayers);
  const std::uint32_t repeat = std::max(1U, mib_ / (chunks * kLayers));
  auto made = BenchSpace::create({.layers = kLayers, .chunks = chunks});
  if (!made) return std::unexpected(std::move(made.error()));
  auto store = BenchStore::open(url, environment);
  if (!store) return std::unexpected(std::move(store.error()));
  if (auto ok = made->put(*store, chunks); !ok) return ok;
  auto ok =
      measure("layer stream", scheme, static_cast<double>(made->payload_bytes()) * repeat,
              environment, [&](bool large) {
                return std::vector<std::string>{"bench",
                                                "stream-read-client",
                                                url,
                                                "--chunks",
                                                fmt::format("{}", chunks),
                                                "--repeat",
                                                fmt::format("{}", large ? 2 * repeat : repeat)};
              });
  if (!ok) return ok;
  return store->remove_all();
}

Result<void> CpuBench::measure(
    const std::string& path, const std::string& scheme, double step_bytes,
    const Environment& environment,
    const std::function<std::vector<std::string>(bool large)>& arguments) {
  nlohmann::ordered_json row{{"path", path}, {"scheme", scheme}, {"mib", step_bytes / (1 << 20)}};
  if (is_program(kValgrind)) {
    auto small = instructions(arguments(false), environment);
    if (!small) return std::unexpected(std::move(small.error()));
    auto large = instructions(arguments(true), environment);
    if (!large) return std::unexpected(std::move(large.error()));
    const double more = static_cast<double>(*large) - static_cast<double>(*small);
    row["instructions_per_byte"] = more / step_bytes;
  }
  auto output =
      run_child({own_program(), arguments(true), aws_variables(environment)}, kRunTimeout);
  if (!output) return std::unexpected(std::move(output.error()));
  auto result = parse_client_result(*output);
  if (!result) return std::unexpected(std::move(result.error()));
  const auto bytes = static_cast<double>(result->bytes);
  row["client_cpu_s_per_gb"] = result->cpu_s / (bytes / 1e9);
  row["mb_per_s"] = bytes / 1e6 / result->seconds;
  report_.add(std::move(row));
  return {};
}

Result<std::uint64_t> CpuBench::instructions(const std::vector<std::string>& arguments,
                                             const Environment& environment) {
  const std::string file = (folder_->path() / "callgrind").string();
  ChildCommand command{
      .program = kValgrind,
      .arguments = {"--tool=callgrind", "--quiet", "--callgrind-out-file=" + file, own_program()},
      .variables = aws_variables(environment)};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  auto output = run_child(command, kRunTimeout);
  if (!output) return std::unexpected(std::move(output.error()));
  return read_total(file);
}

}  // namespace

ExitCode run_bench_cpu(const CpuOptions& options, Console& console) {
  CpuBench bench(options, console);
  if (auto ok = bench.run(); !ok) return console.error(ok.error());
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
