#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cache/admin.h"
#include "cli/admin_commands.h"
#include "cli/open_view.h"
#include "format/names.h"

namespace objectcache::cli {
namespace {

Result<std::vector<std::string>> tenants_of(const ListOptions& options,
                                            const cache::StoreView& view) {
  if (!options.all_tenants) return std::vector<std::string>{options.store.tenant};
  return cache::list_tenants(view);
}

std::string describe(const Result<NamespaceSpec>& spec) {
  if (!spec) return fmt::format("({})", spec.error().message);
  return fmt::format("{} {}, {} layers, chunks of {} tokens", spec->model_architecture,
                     spec->model_fingerprint, spec->layers, spec->chunk_tokens);
}

ExitCode list_namespaces(const ListOptions& options, const OpenView& store, Console& console) {
  auto tenants = tenants_of(options, store.view());
  if (!tenants) return console.error(tenants.error());
  auto rows = nlohmann::ordered_json::array();
  for (const std::string& tenant : *tenants) {
    auto namespaces = cache::list_namespaces(store.view(), tenant);
    if (!namespaces) return console.error(namespaces.error());
    for (const std::string& hex : *namespaces) {
      const std::string words = describe(cache::read_namespace(store.view(), tenant, hex));
      console.line(fmt::format("{:<16} {}  {}", tenant, hex, words));
      rows.push_back({{"tenant", tenant}, {"namespace", hex}, {"description", words}});
    }
  }
  if (rows.empty()) console.line("nothing is stored here");
  console.document({{"namespaces", rows}});
  return ExitCode::kOk;
}

ExitCode list_chunks(const ListOptions& options, const OpenView& store, Console& console) {
  auto rows = nlohmann::ordered_json::array();
  const auto prefix = cache::namespace_prefix(options.store.tenant, options.namespace_hex);
  auto walked = cache::for_each_object(
      store.view(), prefix, [&](const store::ObjectInfo& info) -> Result<void> {
        const auto parsed = format::parse_object_name("", info.key.text);
        if (!parsed || parsed->object_layer > 0) return {};
        const auto when = std::chrono::system_clock::to_time_t(info.modified);
        console.line(fmt::format("{}  {}  {:>10}  {:%Y-%m-%d %H:%M:%S}Z", parsed->chunk.hex(),
                                 format::shard_text(parsed->shard), human_bytes(info.size_bytes),
                                 fmt::gmtime(when)));
        if (console.json()) {
          rows.push_back({{"chunk", parsed->chunk.hex()},
                          {"shard", format::shard_text(parsed->shard)},
                          {"bytes", info.size_bytes},
                          {"modified_unix_s", when}});
        }
        return {};
      });
  if (!walked) return console.error(walked.error());
  console.document({{"namespace", options.namespace_hex}, {"chunks", rows}});
  return ExitCode::kOk;
}

}  // namespace

ExitCode run_list(const ListOptions& options, Console& console) {
  auto store = open_view(options.store);
  if (!store) return console.error(store.error());
  return options.namespace_hex.empty() ? list_namespaces(options, *store, console)
                                       : list_chunks(options, *store, console);
}

ExitCode run_stat(const StatOptions& options, Console& console) {
  auto store = open_view(options.store);
  if (!store) return console.error(store.error());
  auto namespaces = cache::list_namespaces(store->view(), options.store.tenant);
  if (!namespaces) return console.error(namespaces.error());
  auto rows = nlohmann::ordered_json::array();
  std::uint64_t bytes = 0;
  std::uint64_t objects = 0;
  for (const std::string& hex : *namespaces) {
    auto usage = cache::measure_namespace(store->view(), options.store.tenant, hex);
    if (!usage) return console.error(usage.error());
    bytes += usage->bytes;
    objects += usage->objects;
    for (const auto& [shard, part] : usage->shards) {
      console.line(fmt::format("{}  {:<16} {:>8} chunks  {:>8} objects  {:>10}", hex, shard,
                               part.chunks, part.objects, human_bytes(part.bytes)));
      rows.push_back({{"namespace", hex},
                      {"shard", shard},
                      {"chunks", part.chunks},
                      {"objects", part.objects},
                      {"bytes", part.bytes}});
    }
    if (usage->foreign_objects > 0) {
      console.line(
          fmt::format("{}  {} objects have names that are not ours", hex, usage->foreign_objects));
    }
  }
  console.line(fmt::format("tenant {}: {} namespaces, {} objects, {}", options.store.tenant,
                           namespaces->size(), objects, human_bytes(bytes)));
  console.document({{"tenant", options.store.tenant},
                    {"namespaces", namespaces->size()},
                    {"objects", objects},
                    {"bytes", bytes},
                    {"shards", rows}});
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
