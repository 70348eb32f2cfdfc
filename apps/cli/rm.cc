#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cache/admin.h"
#include "cli/admin_commands.h"
#include "cli/files.h"
#include "cli/open_view.h"
#include "objectcache/key_chain.h"

namespace objectcache::cli {
namespace {

Result<cache::RemoveReport> remove_prompt(const RemoveOptions& options, const OpenView& store) {
  auto spec = read_namespace_file(options.prefix.namespace_file);
  if (!spec) return std::unexpected(std::move(spec.error()));
  auto tokens = read_tokens_file(options.prefix.tokens_file);
  if (!tokens) return std::unexpected(std::move(tokens.error()));
  auto units = unit_keys(*spec, options.prefix.cache_salt, *tokens);
  if (!units) return std::unexpected(std::move(units.error()));
  auto digest = namespace_digest(*spec);
  if (!digest) return std::unexpected(std::move(digest.error()));
  auto names = format::ObjectNames::create("", options.store.tenant, *digest);
  if (!names) return std::unexpected(std::move(names.error()));
  const std::vector<ChunkKey> chunks = chunk_keys(*units, spec->units_per_chunk());
  const std::size_t first = std::min<std::size_t>(options.first_chunk, chunks.size());
  return cache::remove_chunks(store.view(), *names, std::span(chunks).subspan(first),
                              options.dry_run);
}

Result<cache::RemoveReport> remove(const RemoveOptions& options, const OpenView& store,
                                   Console& console) {
  if (!options.prefix.tokens_file.empty()) return remove_prompt(options, store);
  const std::string prefix =
      options.whole_tenant ? format::tenant_prefix("", options.store.tenant)
                           : cache::namespace_prefix(options.store.tenant, options.namespace_hex);
  auto report = cache::remove_under(
      store.view(), prefix, options.dry_run, [&](const cache::RemoveReport& so_far) {
        console.progress("rm", so_far.objects, so_far.objects, "objects");
      });
  console.progress_end();
  return report;
}

}  // namespace

ExitCode run_remove(const RemoveOptions& options, Console& console) {
  const int targets = (options.prefix.tokens_file.empty() ? 0 : 1) +
                      (options.whole_tenant ? 1 : 0) + (options.namespace_hex.empty() ? 0 : 1);
  if (targets != 1) {
    return console.error(
        fail(ErrorCode::kInvalidArgument,
             "say exactly one: --name (a namespace), --whole-tenant, or --namespace "
             "with --tokens (a prompt)",
             "rm", options.store.url)
            .error());
  }
  if (!options.dry_run && !options.yes) {
    return console.error(fail(ErrorCode::kInvalidArgument,
                              "this removes KV for good: say --yes, or look first with --dry-run",
                              "rm", options.store.url)
                             .error());
  }
  auto store = open_view(options.store);
  if (!store) return console.error(store.error());
  auto report = remove(options, *store, console);
  if (!report) return console.error(report.error());
  console.line(fmt::format("{} {} objects, {}", options.dry_run ? "would remove" : "removed",
                           report->objects, human_bytes(report->bytes)));
  console.document({{"dry_run", options.dry_run},
                    {"objects", report->objects},
                    {"bytes", report->bytes},
                    {"failed", report->failures.size()}});
  if (report->failures.empty()) return ExitCode::kOk;
  return console.error(report->failures.front().error);
}

}  // namespace objectcache::cli
