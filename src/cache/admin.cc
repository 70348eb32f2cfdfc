#include "cache/admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/blocking.h"

namespace objectcache::cache {
namespace {

constexpr std::size_t kKeysPerDelete = 1000;

TimePoint call_deadline(const StoreView& view) { return view.loop.now() + view.call_timeout; }

Result<store::ListPage> list_page(const StoreView& view, std::string_view prefix,
                                  std::string start_after, char delimiter) {
  const TimePoint deadline = call_deadline(view);
  store::ListRequest request{.prefix = std::string(prefix),
                             .start_after = std::move(start_after),
                             .delimiter = delimiter,
                             .deadline = deadline};
  return run_blocking<store::ListPage>(view.loop, deadline + std::chrono::seconds(1),
                                       [&view, request = std::move(request)](auto done) mutable {
                                         return view.store.list(view.loop, std::move(request),
                                                                std::move(done));
                                       });
}

/// The names one level below `prefix`, without their '/'.
Result<std::vector<std::string>> list_children(const StoreView& view, std::string_view prefix) {
  std::vector<std::string> children;
  std::string start_after;
  do {
    auto page = list_page(view, prefix, std::move(start_after), '/');
    if (!page) return std::unexpected(std::move(page.error()));
    for (const std::string& child : page->common_prefixes) {
      children.push_back(child.substr(prefix.size(), child.size() - prefix.size() - 1));
    }
    start_after = std::move(page->next_start_after);
  } while (!start_after.empty());
  return children;
}

bool is_namespace_hex(std::string_view text) {
  return text.size() == 32 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<void> remove_keys(const StoreView& view, std::vector<store::ObjectKey> keys,
                         RemoveReport& report) {
  while (!keys.empty()) {
    const std::size_t count = std::min(keys.size(), kKeysPerDelete);
    std::vector<store::ObjectKey> part(
        std::make_move_iterator(keys.begin()),
        std::make_move_iterator(keys.begin() + static_cast<std::ptrdiff_t>(count)));
    keys.erase(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count));
    const TimePoint deadline = call_deadline(view);
    auto failures = run_blocking<std::vector<store::RemoveFailure>>(
        view.loop, deadline + std::chrono::seconds(1),
        [&view, deadline, part = std::move(part)](auto done) mutable {
          return view.store.remove_many(view.loop, std::move(part), deadline, std::move(done));
        });
    if (!failures) return std::unexpected(std::move(failures.error()));
    report.objects += count - failures->size();
    std::ranges::move(*failures, std::back_inserter(report.failures));
  }
  return {};
}

/// Objects of one page, in the order in which they may be removed.
struct RemovalOrder {
  std::vector<store::ObjectKey> main;
  std::vector<store::ObjectKey> layers;
  std::vector<store::ObjectKey> descriptions;

  void add(const store::ObjectInfo& info) {
    const auto parsed = format::parse_object_name("", info.key.text);
    if (info.key.text.ends_with("/namespace.json")) {
      descriptions.push_back(info.key);
    } else if (parsed && parsed->object_layer > 0) {
      layers.push_back(info.key);
    } else {
      main.push_back(info.key);
    }
  }
};

Result<void> remove_in_order(const StoreView& view, RemovalOrder& order, RemoveReport& report) {
  for (auto* keys : {&order.main, &order.layers}) {
    if (auto ok = remove_keys(view, std::exchange(*keys, {}), report); !ok) return ok;
  }
  return {};
}

}  // namespace

Result<void> for_each_object(const StoreView& view, std::string_view prefix,
                             const std::function<Result<void>(const store::ObjectInfo&)>& visit) {
  std::string start_after;
  do {
    auto page = list_page(view, prefix, std::move(start_after), 0);
    if (!page) return std::unexpected(std::move(page.error()));
    for (const store::ObjectInfo& info : page->entries) {
      if (auto ok = visit(info); !ok) return ok;
    }
    start_after = std::move(page->next_start_after);
  } while (!start_after.empty());
  return {};
}

Result<std::vector<std::string>> list_tenants(const StoreView& view) {
  auto children = list_children(view, "");
  if (children) {
    std::erase_if(*children,
                  [](const auto& name) { return format::tenant_problem(name).has_value(); });
  }
  return children;
}

Result<std::vector<std::string>> list_namespaces(const StoreView& view, std::string_view tenant) {
  auto children = list_children(view, format::tenant_prefix("", tenant));
  if (children) std::erase_if(*children, [](const auto& name) { return !is_namespace_hex(name); });
  return children;
}

std::string namespace_prefix(std::string_view tenant, std::string_view namespace_hex) {
  return fmt::format("{}{}/", format::tenant_prefix("", tenant), namespace_hex);
}

Result<std::string> read_small_object(const StoreView& view, store::ObjectKey key,
                                      std::uint64_t bytes_max) {
  const TimePoint deadline = call_deadline(view);
  const TimePoint give_up = deadline + std::chrono::seconds(1);
  auto info = run_blocking<std::optional<store::ObjectInfo>>(view.loop, give_up, [&](auto done) {
    return view.store.head(view.loop, key, deadline, std::move(done));
  });
  if (!info) return std::unexpected(std::move(info.error()));
  if (!*info) return fail(ErrorCode::kNotFound, "there is no such object", "GET", key.text);
  const std::uint64_t size = (*info)->size_bytes;
  if (size == 0 || size > bytes_max) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("it has {} bytes; 1 to {} are expected", size, bytes_max), "GET",
                key.text);
  }
  std::string text(size, '\0');
  auto answer = run_blocking<store::GetAnswer>(view.loop, give_up, [&](auto done) {
    store::GetRequest request{
        .key = key, .length = size, .version = (*info)->version, .deadline = deadline};
    request.destination = {std::as_writable_bytes(std::span(text))};
    return view.store.get(view.loop, std::move(request), std::move(done));
  });
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (answer->outcome != store::GetOutcome::kOk) {
    return fail(ErrorCode::kConflict, "it changed while it was read", "GET", key.text);
  }
  return text;
}

Result<NamespaceSpec> read_namespace(const StoreView& view, std::string_view tenant,
                                     std::string_view namespace_hex) {
  const store::ObjectKey key{namespace_prefix(tenant, namespace_hex) + "namespace.json"};
  auto text = read_small_object(view, key, NamespaceSpec::kJsonBytesMax);
  if (!text) return std::unexpected(std::move(text.error()));
  auto spec = parse_namespace(*text);
  if (!spec) {
    return fail(ErrorCode::kCorrupt, spec.error().message, "read namespace", key.text);
  }
  const auto digest = namespace_digest(*spec);
  if (!digest || !digest->hex().starts_with(namespace_hex)) {
    return fail(ErrorCode::kIncompatible, "it describes another namespace than its name says",
                "read namespace", key.text);
  }
  return spec;
}

Result<NamespaceUsage> measure_namespace(const StoreView& view, std::string_view tenant,
                                         std::string_view namespace_hex) {
  NamespaceUsage usage;
  const std::string prefix = namespace_prefix(tenant, namespace_hex);
  auto walked = for_each_object(view, prefix, [&](const store::ObjectInfo& info) -> Result<void> {
    ++usage.objects;
    usage.bytes += info.size_bytes;
    const auto parsed = format::parse_object_name("", info.key.text);
    if (!parsed) {
      usage.foreign_objects += info.key.text == prefix + "namespace.json" ? 0 : 1;
      return {};
    }
    ShardUsage& shard = usage.shards[format::shard_text(parsed->shard)];
    shard.chunks += parsed->object_layer == 0 ? 1 : 0;
    ++shard.objects;
    shard.bytes += info.size_bytes;
    const bool first = usage.oldest == decltype(usage.oldest){};
    usage.oldest = first ? info.modified : std::min(usage.oldest, info.modified);
    usage.newest = std::max(usage.newest, info.modified);
    return {};
  });
  if (!walked) return std::unexpected(std::move(walked.error()));
  return usage;
}

Result<RemoveReport> remove_under(const StoreView& view, std::string_view prefix, bool dry_run,
                                  const std::function<void(const RemoveReport&)>& progress) {
  RemoveReport report;
  RemovalOrder order;
  std::string start_after;
  do {
    auto page = list_page(view, prefix, std::move(start_after), 0);
    if (!page) return std::unexpected(std::move(page.error()));
    for (const store::ObjectInfo& info : page->entries) {
      report.bytes += info.size_bytes;
      if (dry_run) {
        ++report.objects;
      } else {
        order.add(info);
      }
    }
    if (auto ok = remove_in_order(view, order, report); !ok) return std::unexpected(ok.error());
    if (progress) progress(report);
    start_after = std::move(page->next_start_after);
  } while (!start_after.empty());
  if (auto ok = remove_keys(view, std::move(order.descriptions), report); !ok) {
    return std::unexpected(std::move(ok.error()));
  }
  return report;
}

Result<RemoveReport> remove_chunks(const StoreView& view, const format::ObjectNames& names,
                                   std::span<const ChunkKey> chunks, bool dry_run) {
  RemoveReport sum;
  for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk) {
    auto part = remove_under(view, names.chunk_prefix(*chunk), dry_run);
    if (!part) return part;
    sum.objects += part->objects;
    sum.bytes += part->bytes;
    std::ranges::move(part->failures, std::back_inserter(sum.failures));
  }
  return sum;
}

}  // namespace objectcache::cache
