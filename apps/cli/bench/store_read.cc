// The store-read bench: random ranges of an S3 store, read by our client and by others, each a
// process of its own, in turn within one run.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>

#include "cli/bench/bench_store.h"
#include "cli/bench/benches.h"
#include "cli/bench/child_process.h"
#include "cli/bench/read_target.h"
#include "cli/bench/read_workload.h"
#include "cli/bench/report.h"

namespace objectcache::cli {
namespace {

constexpr std::chrono::seconds kRunTimeout{300};

/// One of the clients that are compared.
struct Client {
  std::string name;
  std::string checks;  ///< What it verifies of the bytes.
  ChildCommand command;
  bool tls = true;  ///< Can do https.
};

class StoreReadBench {
 public:
  StoreReadBench(StoreReadOptions options, Console& console)
      : options_(adjusted(std::move(options))),
        console_(console),
        report_("store-read", {{"small", options_.common.small},
                               {"runs", options_.runs},
                               {"run_mib", options_.run_mib},
                               {"objects", options_.objects},
                               {"object_mib", ReadTarget::kObjectBytes >> 20}}) {}

  Result<void> run() {
    if (auto ok = prepare(); !ok) return ok;
    for (ReadTarget& target : targets_) {
      if (auto ok = run_target(target); !ok) return ok;
    }
    report_.print(console_);
    return {};
  }

 private:
  struct Sample {
    std::vector<double> mb_per_s;
    std::vector<double> cpu_s_per_gb;
  };
  using Samples = std::map<std::string, Sample>;

  static StoreReadOptions adjusted(StoreReadOptions options);
  Result<void> prepare();
  Result<void> start_servers();
  Result<void> add_target(const std::string& url, const Environment& environment, bool tls);
  void find_clients();
  void add_script(const std::string& name, const std::string& script);
  [[nodiscard]] bool wanted(const std::string& name) const {
    return options_.clients.empty() ||
           std::ranges::find(options_.clients, name) != options_.clients.end();
  }

  Result<void> run_target(ReadTarget& target);
  Result<void> run_case(const ReadTarget& target, std::uint32_t kib, std::uint32_t connections);
  [[nodiscard]] static Result<ClientResult> run_client(const ReadTarget& target,
                                                       const Client& client,
                                                       const std::string& file);
  void add_rows(const ReadTarget& target, std::uint32_t kib, std::uint32_t connections,
                const Samples& samples);

  const StoreReadOptions options_;
  Console& console_;
  BenchReport report_;
  std::unique_ptr<ScratchFolder> folder_;
  std::vector<TestServer> servers_;
  std::vector<ReadTarget> targets_;
  std::vector<Client> clients_;
  std::uint64_t runs_done_ = 0;
};

// ---------------------------------------------------------------- what is there to run

StoreReadOptions StoreReadBench::adjusted(StoreReadOptions options) {
  if (options.common.small) {
    options.runs = 1;
    options.run_mib = 8;
    options.objects = 1;
    options.connections = {4};
    options.range_kib = {256};
  }
  return options;
}

Result<void> StoreReadBench::prepare() {
  auto folder = ScratchFolder::create();
  if (!folder) return std::unexpected(std::move(folder.error()));
  folder_ = std::move(*folder);
  if (options_.url.empty() && options_.url_tls.empty()) {
    if (auto ok = start_servers(); !ok) return ok;
  }
  if (!options_.url.empty()) {
    if (auto ok = add_target(options_.url, options_.common.environment, false); !ok) return ok;
  }
  if (!options_.url_tls.empty()) {
    if (auto ok = add_target(options_.url_tls, options_.common.environment, true); !ok) return ok;
  }
  find_clients();
  return {};
}

Result<void> StoreReadBench::start_servers() {
  report_.note("the store is the tests' server in memory, not a real one");
  for (const bool tls : {false, true}) {
    const std::string folder = tls ? (folder_->path() / "tls").string() : std::string();
    if (tls) std::filesystem::create_directories(folder);
    auto server = start_test_server({.tls_folder = folder, .lenient = true});
    if (!server) return std::unexpected(std::move(server.error()));
    servers_.push_back(std::move(*server));
    const Environment environment =
        with_variables(options_.common.environment, servers_.back().credentials);
    if (auto ok = add_target(servers_.back().url, environment, tls); !ok) return ok;
  }
  return {};
}

Result<void> StoreReadBench::add_target(const std::string& url, const Environment& environment,
                                        bool tls) {
  auto target = ReadTarget::create(url, environment, options_.objects);
  if (!target) return std::unexpected(std::move(target.error()));
  if ((target->scheme() == "https") != tls) {
    return fail(ErrorCode::kInvalidArgument, "--url is for http, --url-tls for https", "bench");
  }
  targets_.push_back(std::move(*target));
  return {};
}

void StoreReadBench::find_clients() {
  if (wanted("objectcache")) {
    clients_.push_back({"objectcache", "crc32c", {own_program(), {"bench", "store-read-client"}}});
  }
  for (const auto& [name, program, tls] :
       {std::tuple{"socket", "socket_read", false}, std::tuple{"libcurl", "curl_read", true}}) {
    if (!wanted(name)) continue;
    const std::string path = program_beside(program);
    if (is_program(path)) {
      clients_.push_back({name, "nothing", {path, {}}, tls});
    } else {
      report_.note(fmt::format("missing: {} ({} is not built)", name, program));
    }
  }
  add_script("obstore", "obstore_read.py");
  add_script("awscrt", "awscrt_read.py");
}

void StoreReadBench::add_script(const std::string& name, const std::string& script) {
  if (!wanted(name)) return;
  // The program lies in build/bin of a checkout; what is installed has no scripts.
  const auto root = std::filesystem::path(own_program()).parent_path().parent_path().parent_path();
  const std::string python =
      options_.python.empty() ? (root / ".venv/bin/python").string() : options_.python;
  const std::filesystem::path folder = options_.baselines.empty()
                                           ? root / "bench/baselines"
                                           : std::filesystem::path(options_.baselines);
  const std::string path = (folder / script).string();
  const auto missing = [&](std::string_view why) {
    report_.note(fmt::format("missing: {} ({})", name, why));
  };
  if (!is_program(python)) return missing("no Python environment: ./dev bench makes one");
  if (!std::filesystem::exists(path)) return missing("its script is not there: --baselines");
  if (!run_child({python, {"-c", "import " + name}}, std::chrono::seconds(60))) {
    return missing("the package is not installed");
  }
  clients_.push_back({name, "nothing", {python, {path}}});
}

// ---------------------------------------------------------------- running

Result<void> StoreReadBench::run_target(ReadTarget& target) {
  auto store = BenchStore::open(target.url(), target.environment());
  if (!store) return std::unexpected(std::move(store.error()));
  if (auto ok = target.put(*store); !ok) return ok;
  for (const std::uint32_t kib : options_.range_kib) {
    for (const std::uint32_t connections : options_.connections) {
      target.sign();
      if (auto ok = run_case(target, kib, connections); !ok) return ok;
    }
  }
  return store->remove_all();
}

Result<void> StoreReadBench::run_case(const ReadTarget& target, std::uint32_t kib,
                                      std::uint32_t connections) {
  std::vector<const Client*> clients;
  for (const Client& client : clients_) {
    if (client.tls || target.scheme() == "http") clients.push_back(&client);
  }
  const std::uint64_t runs_all = targets_.size() * options_.range_kib.size() *
                                 options_.connections.size() * options_.runs * clients.size();
  Samples samples;
  for (std::uint32_t run = 0; run < options_.runs; ++run) {
    const std::string file = (folder_->path() / "workload").string();
    std::ofstream(file) << format_workload(target.workload(
        {.range_kib = kib, .connections = connections, .mib = options_.run_mib}, run + 1));
    // Each run starts with another client, so that none is always first after a pause.
    if (!clients.empty()) std::ranges::rotate(clients, clients.begin() + 1);
    for (const Client* client : clients) {
      auto result = run_client(target, *client, file);
      console_.progress("store-read", std::min(++runs_done_, runs_all), runs_all, "runs");
      if (!result) return std::unexpected(std::move(result.error()));
      const auto bytes = static_cast<double>(result->bytes);
      samples[client->name].mb_per_s.push_back(bytes / 1e6 / result->seconds);
      samples[client->name].cpu_s_per_gb.push_back(result->cpu_s / (bytes / 1e9));
    }
  }
  add_rows(target, kib, connections, samples);
  return {};
}

Result<ClientResult> StoreReadBench::run_client(const ReadTarget& target, const Client& client,
                                                const std::string& file) {
  ChildCommand command = client.command;
  command.arguments.push_back(file);
  for (const auto& [name, value] : target.environment().variables) {
    if (name.starts_with("AWS_")) command.variables[name] = value;
  }
  auto output = run_child(command, kRunTimeout);
  if (!output) return std::unexpected(std::move(output.error()));
  return parse_client_result(*output);
}

/// The median of a[i] / b[i]: what was measured side by side is compared side by side.
double paired_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return median(ratios);
}

void StoreReadBench::add_rows(const ReadTarget& target, std::uint32_t kib,
                              std::uint32_t connections, const Samples& samples) {
  for (const Client& client : clients_) {
    const auto found = samples.find(client.name);
    if (found == samples.end()) continue;
    const Sample& sample = found->second;
    nlohmann::ordered_json row{{"scheme", target.scheme()},
                               {"range_kib", kib},
                               {"connections", connections},
                               {"client", client.name},
                               {"checks", client.checks},
                               {"mb_per_s", median(sample.mb_per_s)},
                               {"mb_per_s_min", std::ranges::min(sample.mb_per_s)},
                               {"mb_per_s_max", std::ranges::max(sample.mb_per_s)},
                               {"client_cpu_s_per_gb", median(sample.cpu_s_per_gb)}};
    if (const auto ours = samples.find("objectcache"); ours != samples.end() && found != ours) {
      row["objectcache_speed_ratio"] = paired_ratio(ours->second.mb_per_s, sample.mb_per_s);
      row["objectcache_cpu_ratio"] = paired_ratio(ours->second.cpu_s_per_gb, sample.cpu_s_per_gb);
    }
    report_.add(std::move(row));
  }
}

}  // namespace

ExitCode run_bench_store_read(const StoreReadOptions& options, Console& console) {
  StoreReadBench bench(options, console);
  if (auto ok = bench.run(); !ok) return console.error(ok.error());
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
