#include "store/file/file_url.h"

#include "base/parameters.h"

namespace objectcache::store {

Result<FileStore::Options> file_options(const Url& url) {
  if (!url.authority.empty()) {
    return fail(
        ErrorCode::kInvalidArgument,
        "'//' is followed by the name of a host; for a directory write file:/dir or file:dir",
        "open store", url.display());
  }
  if (url.path.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the directory is missing: write file:/dir",
                "open store", url.display());
  }
  FileStore::Options options{.directory = url.path};
  ParameterReader in(url.parameters);
  in.choice("durability", {{"none", false}, {"fsync", true}}, options.fsync);
  std::uint64_t min_free_bytes = 0;
  in.size("min_free", min_free_bytes);
  if (in.has("min_free")) options.min_free_bytes = min_free_bytes;
  in.count("threads", 1, 256, options.threads);
  in.flag("isolate", options.isolate);
  in.flag("direct", options.direct);
  in.flag("create", options.create_directory);
  Duration stale_temp_age = options.stale_temp_age;
  in.duration("stale_temp_age", stale_temp_age);
  options.stale_temp_age = std::chrono::duration_cast<std::chrono::seconds>(stale_temp_age);
  if (auto done = in.finish(); !done) return std::unexpected(std::move(done.error()));
  return options;
}

}  // namespace objectcache::store
