#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "format/names.h"
#include "objectcache/namespace_spec.h"
#include "store/object_store.h"

namespace objectcache::cache {

/// What looks after a store from the outside: lists, measures and removes what is in it. Every
/// function blocks, call by call; `call_timeout` bounds each call to the store.
///
/// Threads: any but the loop's own. Store and loop must outlive the calls.
struct StoreView {
  EventLoop& loop;
  store::ObjectStore& store;
  Duration call_timeout = std::chrono::seconds(30);
};

/// Calls `visit` for every object whose key starts with `prefix`, ascending, a page at a time. An
/// error of `visit` ends the walk and is returned.
[[nodiscard]] Result<void> for_each_object(
    const StoreView& view, std::string_view prefix,
    const std::function<Result<void>(const store::ObjectInfo&)>& visit);

/// Tenants that own anything, ascending.
[[nodiscard]] Result<std::vector<std::string>> list_tenants(const StoreView& view);
/// Namespaces of a tenant, as the 32 hexadecimal digits of their names, ascending.
[[nodiscard]] Result<std::vector<std::string>> list_namespaces(const StoreView& view,
                                                               std::string_view tenant);

/// "<tenant>/<32 hex>/": everything of one namespace. Requires valid arguments.
[[nodiscard]] std::string namespace_prefix(std::string_view tenant, std::string_view namespace_hex);
/// The whole object, at most `bytes_max` bytes. kNotFound: there is none.
[[nodiscard]] Result<std::string> read_small_object(const StoreView& view, store::ObjectKey key,
                                                    std::uint64_t bytes_max);
/// The spec that namespace.json holds; kIncompatible if its digest is not that of the namespace.
[[nodiscard]] Result<NamespaceSpec> read_namespace(const StoreView& view, std::string_view tenant,
                                                   std::string_view namespace_hex);

struct ShardUsage {
  std::uint64_t chunks = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
};
struct NamespaceUsage {
  std::map<std::string, ShardUsage> shards;  ///< By "tp0of1-pp0of1".
  std::uint64_t objects = 0;                 ///< All, namespace.json and foreign ones included.
  std::uint64_t bytes = 0;
  std::uint64_t foreign_objects = 0;               ///< Names that are not of our format.
  std::chrono::system_clock::time_point oldest{};  ///< Of chunks; epoch: none.
  std::chrono::system_clock::time_point newest{};
};
[[nodiscard]] Result<NamespaceUsage> measure_namespace(const StoreView& view,
                                                       std::string_view tenant,
                                                       std::string_view namespace_hex);

struct RemoveReport {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  std::vector<store::RemoveFailure> failures;
};
/// Removes everything under `prefix`, in an order in which a reader never finds a chunk without its
/// header: main objects before layer objects, namespace.json last. Restartable. `dry_run` counts
/// only.
[[nodiscard]] Result<RemoveReport> remove_under(
    const StoreView& view, std::string_view prefix, bool dry_run,
    const std::function<void(const RemoveReport&)>& progress = {});
/// Removes all shards of these chunks of a prefix, the last chunk first, so that what is left at
/// any moment is a prefix.
[[nodiscard]] Result<RemoveReport> remove_chunks(const StoreView& view,
                                                 const format::ObjectNames& names,
                                                 std::span<const ChunkKey> chunks, bool dry_run);

}  // namespace objectcache::cache
