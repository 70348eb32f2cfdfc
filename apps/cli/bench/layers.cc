// The layers bench: published rows on a slower link, whole prefix first, layer by layer, whole
// objects, and planned, beside the ideal.
#include "cli/bench/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "cli/bench/layers_prefix.h"
#include "cli/bench/layers_rows.h"
#include "cli/bench/layers_store.h"
#include "cli/bench/report.h"

namespace objectcache::cli {
namespace {

constexpr std::array<LayersWay, 4> kWays{{{"whole-prefix", ReadMode::kChunkwise, true},
                                          {"layerwise", ReadMode::kLayerwise, false},
                                          {"whole-objects", ReadMode::kWholeObjects, false},
                                          {"planned", ReadMode::kPlanned, false}}};
constexpr double kGoalP50Ms = 3;
constexpr double kGoalP95Ms = 8;
/// A tiny row for the test suite.
constexpr LayersRow kSmallRow{"small", 1'024, 32};

struct Layout {
  const char* name;
  ObjectLayout layout;
};
constexpr std::array<Layout, 2> kLayouts{
    {{"chunk", ObjectLayout::kChunk}, {"layer", ObjectLayout::kLayer}}};

bool wanted(const std::vector<std::string>& names, const char* name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

/// One store and one scaling of the rows.
struct Case {
  std::string url;
  std::string store;  ///< As shown.
  RowScaling scaling;
  bool modelled_link;
};

/// What all runs of one way to read one layout came to.
struct Sample {
  std::vector<double> ttft_ms;
  std::vector<double> over_ideal_ms;  ///< Each against the rate measured in its own run.
  std::vector<double> first_byte_ms;
  std::vector<double> layer0_ms;
  std::vector<double> loaded_ms;
  std::vector<double> cpu_s;
  std::uint64_t requests = 0;
};

/// All runs of one row from one store.
class RowBench {
 public:
  RowBench(const LayersOptions& options, const Case& bench_case, const LayersRow& row,
           const ScaledRow& scaled, LayersPrefix::Memory& memory)
      : options_(options),
        case_(bench_case),
        row_(row),
        scaled_(scaled),
        connections_(options.connections != 0 ? options.connections : scaled.connections),
        memory_(memory) {}

  Result<void> run(Console& console, BenchReport& report) {
    auto store =
        LayersStore::open({.url = case_.url,
                           .modelled_link = case_.modelled_link,
                           .link_bytes_per_s = scaled_.link_bytes_per_s,
                           .first_byte = std::chrono::duration_cast<Duration>(
                               std::chrono::duration<double, std::milli>(options_.first_byte_ms)),
                           .environment = options_.common.environment});
    if (!store) return std::unexpected(std::move(store.error()));
    for (const Layout& layout : kLayouts) {
      if (!wanted(options_.layouts, layout.name)) continue;
      auto prefix = LayersPrefix::create(scaled_, layout.layout, row_.compute_ms / kRowLayers,
                                         store->reader(), memory_);
      if (!prefix) return std::unexpected(std::move(prefix.error()));
      prefixes_.push_back({.layout = &layout, .prefix = std::move(*prefix), .samples = {}});
    }
    auto measured = measure(*store, console);
    for (Prefix& prefix : prefixes_) {
      auto removed = store->remove(prefix.prefix.name_hex());
      if (measured && !removed) measured = std::move(removed);
    }
    if (measured) add_rows(report);
    prefixes_.clear();  // Before the caches that they read through.
    return measured;
  }

 private:
  struct Prefix {
    const Layout* layout;
    LayersPrefix prefix;
    std::array<Sample, kWays.size()> samples;
  };

  Result<void> measure(LayersStore& store, Console& console) {
    for (Prefix& prefix : prefixes_) {
      if (auto ok = prefix.prefix.write(store.writer()); !ok) return ok;
      if (auto ok = warm_up(prefix); !ok) return ok;
    }
    for (std::uint32_t run = 0; run < options_.runs; ++run) {
      console.progress(
          fmt::format("{} {} {}", case_.store, row_scaling_name(case_.scaling), row_.name), run,
          options_.runs, "runs");
      auto rate = prefixes_.front().prefix.payload_rate();
      if (!rate) return std::unexpected(std::move(rate.error()));
      rates_.push_back(*rate);
      for (Prefix& prefix : prefixes_) {
        if (auto ok = run_once(prefix, *rate); !ok) return ok;
      }
    }
    console.progress_end();
    return {};
  }

  /// Opens connections, lets the planner learn what the store is like, and compares bytes.
  Result<void> warm_up(Prefix& prefix) const {
    for (const LayersWay& way : kWays) {
      if (!wanted(options_.modes, way.name)) continue;
      if (auto read = prefix.prefix.read(way, connections_); !read) {
        return std::unexpected(std::move(read.error()));
      }
      if (auto ok = prefix.prefix.check(); !ok) return ok;
    }
    return {};
  }

  Result<void> run_once(Prefix& prefix, double rate) const {
    for (std::size_t i = 0; i < kWays.size(); ++i) {
      if (!wanted(options_.modes, kWays[i].name)) continue;
      auto read = prefix.prefix.read(kWays[i], connections_);
      if (!read) return std::unexpected(std::move(read.error()));
      Sample& sample = prefix.samples[i];
      sample.ttft_ms.push_back(read->ttft_ms);
      sample.over_ideal_ms.push_back(read->ttft_ms - ideal_ms(rate));
      sample.first_byte_ms.push_back(read->first_byte_ms);
      sample.layer0_ms.push_back(read->layer0_ms);
      sample.loaded_ms.push_back(read->loaded_ms);
      sample.cpu_s.push_back(read->cpu_s);
      sample.requests = read->requests;
    }
    return {};
  }

  [[nodiscard]] double transfer_ms(double rate) const {
    return static_cast<double>(scaled_.layer_bytes()) / rate * 1e3;
  }
  [[nodiscard]] double ideal_ms(double rate) const {
    return ideal_ttft_ms(row_.compute_ms / kRowLayers, transfer_ms(rate));
  }

  void add_rows(BenchReport& report) const {
    const double rate = median(rates_);
    const auto gigabytes = static_cast<double>(scaled_.payload_bytes()) / 1e9;
    for (const Prefix& prefix : prefixes_) {
      for (std::size_t i = 0; i < kWays.size(); ++i) {
        const Sample& sample = prefix.samples[i];
        if (sample.ttft_ms.empty()) continue;
        const double over_p50 = median(sample.over_ideal_ms);
        const double over_p95 = quantile(sample.over_ideal_ms, 0.95);
        const double first_byte = median(sample.first_byte_ms);
        nlohmann::ordered_json row{
            {"scaling", row_scaling_name(case_.scaling)},
            {"store", case_.store},
            {"row", row_.name},
            {"f", options_.scale},
            {"G", kRowChunkTokens},
            {"N", scaled_.chunks},
            {"slice_kib", static_cast<double>(scaled_.slice_bytes()) / 1024},
            {"K", connections_},
            {"layout", prefix.layout->name},
            {"mode", kWays[i].name},
            {"ttft_ms_p50", median(sample.ttft_ms)},
            {"ttft_ms_p95", quantile(sample.ttft_ms, 0.95)},
            {"ideal_ttft_ms", ideal_ms(rate)},
            {"first_byte_ms", first_byte},
            {"over_ideal_ms_p50", over_p50},
            {"over_ideal_ms_p95", over_p95},
            {"layer0_ms", median(sample.layer0_ms)},
            {"loaded_ms", median(sample.loaded_ms)},
            {"window_ms", row_.compute_ms / kRowLayers},
            {"transfer_ms", transfer_ms(rate)},
            {"header_ms", static_cast<double>(prefix.prefix.header_bytes()) / rate * 1e3},
            {"payload_mb_per_s", rate / 1e6},
            {"requests", sample.requests},
            {"client_cpu_s_per_gb", median(sample.cpu_s) / gigabytes}};
        if (kWays[i].mode == ReadMode::kPlanned) {
          row["goal_met"] =
              over_p50 <= first_byte + kGoalP50Ms && over_p95 <= first_byte + kGoalP95Ms;
        }
        report.add(std::move(row));
      }
    }
  }

  const LayersOptions& options_;
  const Case& case_;
  const LayersRow& row_;
  const ScaledRow scaled_;
  const std::uint32_t connections_;
  LayersPrefix::Memory& memory_;
  std::vector<Prefix> prefixes_;
  std::vector<double> rates_;
};

std::vector<Case> cases_of(const LayersOptions& options) {
  std::vector<Case> out;
  for (const RowScaling scaling : {RowScaling::kChunks, RowScaling::kSlices}) {
    if (!wanted(options.scalings, row_scaling_name(scaling))) continue;
    if (scaling == RowScaling::kChunks && !options.url.empty()) {
      out.push_back({.url = options.url,
                     .store = options.url.substr(0, options.url.find(':')),
                     .scaling = scaling,
                     .modelled_link = options.modelled_link});
      continue;
    }
    for (const char* store : {"memory", "file"}) {
      if (!wanted(options.stores, store)) continue;
      out.push_back({.url = fmt::format("{}:", store),
                     .store = store,
                     .scaling = scaling,
                     .modelled_link = true});
    }
  }
  return out;
}

Result<void> run_all(const LayersOptions& options, Console& console, BenchReport& report) {
  LayersPrefix::Memory memory;
  const std::vector<Case> cases = cases_of(options);
  const std::span<const LayersRow> rows =
      options.common.small ? std::span<const LayersRow>(&kSmallRow, 1) : layers_rows();
  for (const Case& bench_case : cases) {
    for (const LayersRow& row : rows) {
      if (!options.common.small && !wanted(options.rows, row.name)) continue;
      const auto scaled = scale_row(row, bench_case.scaling, options.scale);
      if (!scaled) continue;
      RowBench bench(options, bench_case, row, *scaled, memory);
      if (auto ok = bench.run(console, report); !ok) return ok;
    }
  }
  return {};
}

}  // namespace

ExitCode run_bench_layers(const LayersOptions& given, Console& console) {
  LayersOptions options = given;
  if (options.common.small) {
    options.runs = 2;
    options.scalings = {row_scaling_name(RowScaling::kSlices)};
  }
  BenchReport report("layers",
                     {{"small", options.common.small},
                      {"runs", options.runs},
                      {"f", options.scale},
                      {"link_gbit_per_s", kRowLinkBytesPerSecond * 8 / 1e9 / options.scale},
                      {"modelled_link", options.url.empty() || options.modelled_link},
                      {"modelled_first_byte_ms", options.first_byte_ms}});
  if (auto ok = run_all(options, console, report); !ok) {
    console.progress_end();
    return console.error(ok.error());
  }
  report.note("over_ideal_ms: each run against the ideal at the payload rate measured in that run");
  report.note(
      fmt::format("the link of the modelled hardware is 100 Gbit/s: at f = 1 the cores needed are "
                  "client_cpu_s_per_gb x {}",
                  kRowLinkBytesPerSecond / 1e9));
  report.print(console);
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
