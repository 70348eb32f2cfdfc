#include "cache/verify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/admin_commands.h"
#include "cli/open_view.h"

namespace objectcache::cli {
namespace {

/// Checks one namespace and prints its bad objects; adds to `sum`.
Result<void> verify_one(const VerifyCommandOptions& options, const OpenView& store,
                        const std::string& hex, cache::VerifyReport& sum, Console& console) {
  auto usage = cache::measure_namespace(store.view(), options.store.tenant, hex);
  if (!usage) return std::unexpected(std::move(usage.error()));
  std::uint64_t chunks = 0;
  for (const auto& [shard, part] : usage->shards) chunks += part.chunks;
  cache::VerifyOptions verify{
      .parallel = options.parallel, .repair = options.repair, .progress = {}};
  verify.progress = [&](const cache::VerifyReport& so_far) {
    console.progress("verify", so_far.chunks, chunks,
                     fmt::format("chunks, {} bad", so_far.bad.size()));
  };
  auto report = cache::verify_namespace(store.view(), options.store.tenant, hex, verify);
  console.progress_end();
  if (!report) return std::unexpected(std::move(report.error()));
  for (cache::BadObject& bad : report->bad) {
    console.line(fmt::format("BAD {}{}\n    {}: {}", bad.key.text, bad.removed ? " (removed)" : "",
                             error_code_name(bad.error.code), bad.error.message));
    sum.bad.push_back(std::move(bad));
  }
  sum.chunks += report->chunks;
  sum.bytes += report->bytes;
  return {};
}

}  // namespace

ExitCode run_verify(const VerifyCommandOptions& options, Console& console) {
  auto store = open_view(options.store);
  if (!store) return console.error(store.error());
  std::vector<std::string> namespaces = {options.namespace_hex};
  if (options.namespace_hex.empty()) {
    auto all = cache::list_namespaces(store->view(), options.store.tenant);
    if (!all) return console.error(all.error());
    namespaces = std::move(*all);
  }
  cache::VerifyReport sum;
  for (const std::string& hex : namespaces) {
    if (auto ok = verify_one(options, *store, hex, sum, console); !ok)
      return console.error(ok.error());
  }
  console.line(fmt::format("{} chunks in {} namespaces, {} read: {} bad objects{}", sum.chunks,
                           namespaces.size(), human_bytes(sum.bytes), sum.bad.size(),
                           sum.bad.empty() || options.repair
                               ? ""
                               : "; --repair removes them, the next writer stores them anew"));
  auto bad = nlohmann::ordered_json::array();
  for (const cache::BadObject& object : sum.bad) {
    bad.push_back({{"key", object.key.text},
                   {"code", error_code_name(object.error.code)},
                   {"message", object.error.message},
                   {"removed", object.removed}});
  }
  console.document({{"namespaces", namespaces.size()},
                    {"chunks", sum.chunks},
                    {"bytes", sum.bytes},
                    {"bad", bad}});
  return sum.bad.empty() ? ExitCode::kOk : ExitCode::kBadObjects;
}

}  // namespace objectcache::cli
