#include "store/open_store.h"

#include <fmt/format.h>

#include <utility>

#include "base/parameters.h"
#include "objectcache/cache.h"
#include "store/file/file_url.h"
#include "store/memory/memory_url.h"
#include "store/s3/s3_url.h"

namespace objectcache::store {
namespace {

Result<std::unique_ptr<ObjectStore>> open_memory(const Url& url, const Environment&) {
  auto options = memory_options(url);
  if (!options) return std::unexpected(std::move(options.error()));
  return std::make_unique<MemoryStore>(*options);
}

Result<std::unique_ptr<ObjectStore>> open_file(const Url& url, const Environment&) {
  auto options = file_options(url);
  if (!options) return std::unexpected(std::move(options.error()));
  auto opened = FileStore::open(std::move(*options));
  if (!opened) return std::unexpected(std::move(opened.error()));
  return std::move(*opened);
}

Result<std::unique_ptr<ObjectStore>> open_s3(const Url& url, const Environment& environment) {
  auto opened = store_s3::open_s3(url, environment);
  if (!opened) return std::unexpected(std::move(opened.error()));
  return std::move(*opened);
}

struct Scheme {
  std::string_view name;
  Result<std::unique_ptr<ObjectStore>> (*open)(const Url&, const Environment&);
};
constexpr Scheme kSchemes[] = {{"memory", open_memory}, {"file", open_file}, {"s3", open_s3}};

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_store(const Url& url, const Environment& environment) {
  std::vector<std::string_view> names;
  for (const Scheme& scheme : kSchemes) {
    if (scheme.name == url.scheme) return scheme.open(url, environment);
    names.push_back(scheme.name);
  }
  const std::string_view near = nearest_name(url.scheme, names);
  return fail(ErrorCode::kInvalidArgument,
              near.empty()
                  ? fmt::format("unknown scheme; the schemes are: {}", fmt::join(names, ", "))
                  : fmt::format("unknown scheme; did you mean '{}:'?", near),
              "open store", url.scheme + ":");
}

Result<std::unique_ptr<ObjectStore>> open_store(std::string_view url,
                                                const Environment& environment) {
  auto parsed = parse_url(url);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  return open_store(*parsed, environment);
}

}  // namespace objectcache::store
