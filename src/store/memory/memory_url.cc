#include "store/memory/memory_url.h"

#include "base/parameters.h"

namespace objectcache::store {

Result<MemoryStore::Options> memory_options(const Url& url) {
  if (!url.authority.empty() || !url.path.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "a memory store has no name: write memory:", "open store", url.display());
  }
  MemoryStore::Options options;
  ParameterReader in(url.parameters);
  in.size("capacity", options.capacity_bytes);
  in.count("objects_max", 1, 1'000'000'000, options.objects_max);
  if (auto done = in.finish(); !done) return std::unexpected(std::move(done.error()));
  return options;
}

}  // namespace objectcache::store
