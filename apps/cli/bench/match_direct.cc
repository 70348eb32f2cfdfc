// The match-direct bench: how long it takes to find the longest stored prefix, and to prove it, in
// a store that answers after a millisecond.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/blocking.h"
#include "cli/bench/bench_space.h"
#include "cli/bench/benches.h"
#include "cli/bench/report.h"

namespace objectcache::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{30};
constexpr double kOverheadMs = 1.5;  ///< What two rounds of probes may cost beside the waiting.

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Case {
  std::string name;
  std::span<const ChunkKey> chunks;
  std::uint32_t present;
};

class MatchBench {
 public:
  MatchBench(const MatchDirectOptions& options, Console& console)
      : options_(options),
        console_(console),
        runs_(options.common.small ? 3 : options.runs),
        chunks_(options.common.small ? 256 : options.chunks),
        prove_chunks_(options.common.small ? 64 : std::min(options.prove_chunks, options.chunks)),
        report_("match-direct", {{"small", options.common.small},
                                 {"runs", runs_},
                                 {"chunks", chunks_},
                                 {"prove_chunks", prove_chunks_},
                                 {"latency_ms", options.latency_ms}}) {}

  Result<void> run() {
    if (options_.url.empty()) {
      auto server = start_test_server({.latency_ms = options_.latency_ms});
      if (!server) return std::unexpected(std::move(server.error()));
      const Environment environment =
          with_variables(options_.common.environment, server->credentials);
      if (auto ok = run_store("test server", server->url, environment, true); !ok) return ok;
    } else {
      if (auto ok = run_store("given", options_.url, options_.common.environment, false); !ok) {
        return ok;
      }
    }
    if (!options_.url_rgw.empty()) {
      if (auto ok = run_store("RGW", options_.url_rgw, options_.common.environment, false); !ok) {
        return ok;
      }
    }
    report_.note(fmt::format(
        "goal of match: two rounds of the server's {} ms, and {} ms; head_ms_p50 is one HEAD at a "
        "time on the same connections",
        options_.latency_ms, kOverheadMs));
    report_.print(console_);
    return {};
  }

 private:
  Result<void> run_store(const std::string& name, const std::string& url,
                         const Environment& environment, bool has_goal);
  Result<void> run_match(const std::string& store, CacheNamespace& space, const Case& what,
                         double head_ms, bool has_goal);
  Result<void> run_prove(const std::string& store, CacheNamespace& space,
                         std::span<const ChunkKey> chunks, double head_ms);

  const MatchDirectOptions& options_;
  Console& console_;
  const std::uint32_t runs_;
  const std::uint32_t chunks_;
  const std::uint32_t prove_chunks_;
  BenchReport report_;
};

Result<double> one_head_ms(BenchStore& store, std::uint32_t runs) {
  std::vector<double> sample;
  for (std::uint32_t i = 0; i < runs + 2; ++i) {
    const auto start = Clock::now();
    auto head = run_blocking<std::optional<store::ObjectInfo>>(
        store.loop(), start + kPatience, [&](auto done) {
          return store.store().head(store.loop(), {"no-such-object"}, start + kPatience,
                                    std::move(done));
        });
    if (!head) return std::unexpected(std::move(head.error()));
    if (i >= 2) sample.push_back(ms_since(start));
  }
  return median(sample);
}

/// A prefix whose chunks are present, by half or not at all, each a prompt of its own.
Result<void> MatchBench::run_store(const std::string& name, const std::string& url,
                                   const Environment& environment, bool has_goal) {
  // Small slices: only names and headers matter here. Headers are as large as Llama's.
  BenchShape shape{.layers = 32, .bytes_per_token = 8, .chunks = chunks_, .seed = 1};
  auto all = BenchSpace::create(shape);
  shape.seed = 2;
  auto half = BenchSpace::create(shape);
  shape.seed = 3;
  auto none = BenchSpace::create(shape);
  for (const auto* space : {&all, &half, &none}) {
    if (!*space) return std::unexpected(space->error());
  }
  auto store = BenchStore::open(url, environment);
  if (!store) return std::unexpected(std::move(store.error()));
  if (auto ok = all->put(*store, chunks_); !ok) return ok;
  if (auto ok = half->put(*store, chunks_ / 2); !ok) return ok;
  auto head_ms = one_head_ms(*store, runs_);
  if (!head_ms) return std::unexpected(std::move(head_ms.error()));

  auto cache = Cache::open(url, {.environment = environment});
  if (!cache) return std::unexpected(std::move(cache.error()));
  auto space = (*cache)->open_namespace(all->spec());
  if (!space) return std::unexpected(std::move(space.error()));
  for (const Case& what : {Case{"all present", all->chunks(), chunks_},
                           Case{"half present", half->chunks(), chunks_ / 2},
                           Case{"none present", none->chunks(), 0}}) {
    if (auto ok = run_match(name, *space, what, *head_ms, has_goal); !ok) return ok;
  }
  if (auto ok = run_prove(name, *space, std::span(all->chunks()).first(prove_chunks_), *head_ms);
      !ok) {
    return ok;
  }
  cache->reset();
  return store->remove_all();
}

Result<void> MatchBench::run_match(const std::string& store, CacheNamespace& space,
                                   const Case& what, double head_ms, bool has_goal) {
  std::vector<double> sample;
  Match last;
  for (std::uint32_t i = 0; i < runs_ + 2; ++i) {  // Two to open the connections.
    space.forget(what.chunks);
    const auto start = Clock::now();
    auto match = space.match(what.chunks, start + kPatience);
    const double ms = ms_since(start);
    if (!match) return std::unexpected(std::move(match.error()));
    if (match->chunks != what.present) {
      return fail(ErrorCode::kInternal,
                  fmt::format("match found {} chunks of {}", match->chunks, what.present), "match");
    }
    last = *match;
    if (i >= 2) sample.push_back(ms);
  }
  nlohmann::ordered_json row{
      {"store", store},           {"case", "match, " + what.name},   {"chunks", what.chunks.size()},
      {"rounds", last.rounds},    {"requests", last.probes},         {"head_ms_p50", head_ms},
      {"ms_p50", median(sample)}, {"ms_p95", quantile(sample, 0.95)}};
  if (has_goal) {
    const double goal = 2 * options_.latency_ms + kOverheadMs;
    row["goal_ms"] = goal;
    row["goal_met"] = median(sample) <= goal;
  }
  report_.add(std::move(row));
  return {};
}

Result<void> MatchBench::run_prove(const std::string& store, CacheNamespace& space,
                                   std::span<const ChunkKey> chunks, double head_ms) {
  std::vector<double> sample;
  for (std::uint32_t i = 0; i < runs_ + 1; ++i) {
    const auto start = Clock::now();
    auto proof = space.prove(chunks, start + kPatience);
    const double ms = ms_since(start);
    if (!proof) return std::unexpected(std::move(proof.error()));
    if (proof->chunks != chunks.size()) {
      return fail(ErrorCode::kInternal,
                  fmt::format("prove counted {} chunks of {}", proof->chunks, chunks.size()),
                  "prove");
    }
    if (i >= 1) sample.push_back(ms);
  }
  report_.add({{"store", store},
               {"case", "prove, all present"},
               {"chunks", chunks.size()},
               {"requests", chunks.size()},
               {"head_ms_p50", head_ms},
               {"ms_p50", median(sample)},
               {"ms_p95", quantile(sample, 0.95)}});
  return {};
}

}  // namespace

ExitCode run_bench_match_direct(const MatchDirectOptions& options, Console& console) {
  MatchBench bench(options, console);
  if (auto ok = bench.run(); !ok) return console.error(ok.error());
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
