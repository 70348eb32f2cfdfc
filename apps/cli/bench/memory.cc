// The memory bench: what a large read adds to the memory of the process beside its destination.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/bench/bench_space.h"
#include "cli/bench/benches.h"
#include "cli/bench/child_process.h"
#include "cli/bench/report.h"

namespace objectcache::cli {
namespace {

constexpr std::uint32_t kGoalMib = 64;
constexpr std::uint32_t kLayers = 32;
constexpr std::uint32_t kChunkMib = kLayers;  // Slices of 1 MiB.

Result<nlohmann::json> read_in_child(const std::string& url, const MemoryOptions& options,
                                     std::uint32_t chunks,
                                     const std::map<std::string, std::string>& credentials) {
  auto output = run_child(
      {.program = own_program(),
       .arguments = {"bench", "stream-read-client", url, "--chunks", fmt::format("{}", chunks),
                     "--connections", fmt::format("{}", options.connections)},
       .variables = credentials},
      std::chrono::minutes(10));
  if (!output) return std::unexpected(std::move(output.error()));
  auto json = nlohmann::json::parse(*output, nullptr, false);
  if (!json.is_object()) return fail(ErrorCode::kUnavailable, "the child printed no result", "run");
  return json;
}

Result<void> measure(const MemoryOptions& options, Console& console) {
  const std::uint32_t mib = options.common.small ? 2 * kChunkMib : options.mib;
  const std::uint32_t chunks = std::max(1U, mib / kChunkMib);
  BenchReport report(
      "memory",
      {{"small", options.common.small}, {"chunks", chunks}, {"connections", options.connections}});
  std::string url = options.url;
  std::map<std::string, std::string> credentials;
  std::optional<TestServer> server;
  if (url.empty()) {
    auto started = start_test_server({});
    if (!started) return std::unexpected(std::move(started.error()));
    server.emplace(std::move(*started));
    url = server->url;
    credentials = server->credentials;
    report.note("the store is the tests' server, in a process of its own");
  }
  auto made = BenchSpace::create({.layers = kLayers, .chunks = chunks});
  if (!made) return std::unexpected(std::move(made.error()));
  auto store = BenchStore::open(url, with_variables(options.common.environment, credentials));
  if (!store) return std::unexpected(std::move(store.error()));
  if (auto ok = made->put(*store, chunks); !ok) return ok;

  auto read = read_in_child(url, options, chunks, credentials);
  if (!read) return std::unexpected(std::move(read.error()));
  const double bytes = (*read)["bytes"];
  const double seconds = (*read)["seconds"];
  const double added_mib =
      ((*read)["rss_peak_bytes"].get<double>() - (*read)["rss_before_bytes"].get<double>()) /
      (1 << 20);
  report.add({{"read_mib", bytes / (1 << 20)},
              {"rss_before_mib", (*read)["rss_before_bytes"].get<double>() / (1 << 20)},
              {"rss_added_mib", added_mib},
              {"goal_mib", kGoalMib},
              {"goal_met", added_mib < kGoalMib},
              {"mb_per_s", bytes / 1e6 / seconds},
              {"client_cpu_s_per_gb", (*read)["cpu_s"].get<double>() / (bytes / 1e9)}});
  report.note(
      "rss_added_mib: the most resident memory during the read, less that before it, when "
      "every page of the destination was in place");
  report.print(console);
  return store->remove_all();
}

}  // namespace

ExitCode run_bench_memory(const MemoryOptions& options, Console& console) {
  if (auto ok = measure(options, console); !ok) return console.error(ok.error());
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
