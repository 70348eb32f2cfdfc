#include "cli/bench/layers_store.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cache/admin.h"
#include "cache/cache_impl.h"
#include "objectcache/shard.h"
#include "store/modelled/modelled_link_store.h"
#include "store/open_store.h"

namespace objectcache::cli {

/// A folder that is gone with this.
class LayersStore::Folder {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Folder>> create() {
    std::error_code error;
    std::string path =
        (std::filesystem::temp_directory_path(error) / "objectcache-layers-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
      return fail(ErrorCode::kPermissionDenied, std::strerror(errno), "make a folder", path);
    }
    return std::unique_ptr<Folder>(new Folder(std::move(path)));
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

LayersStore::LayersStore() = default;
LayersStore::LayersStore(LayersStore&&) noexcept = default;
LayersStore::~LayersStore() = default;

Result<LayersStore> LayersStore::open(const Options& options) {
  LayersStore out;
  std::string url = options.url;
  if (url == "file:") {
    auto folder = Folder::create();
    if (!folder) return std::unexpected(std::move(folder.error()));
    out.folder_ = std::move(*folder);
    url += out.folder_->path();
  }
  auto loop = http::Reactor::start();
  if (!loop) return std::unexpected(std::move(loop.error()));
  out.loop_ = std::move(*loop);
  auto store = store::open_store(url, options.environment);
  if (!store) return std::unexpected(std::move(store.error()));
  out.store_ = std::move(*store);

  CacheOptions cache_options;
  cache_options.delete_bad_objects = false;
  const auto open_behind = [&](store::ModelledLinkStore::Options link) {
    return Cache::Impl::open(
        cache_options,
        [&inner = *out.store_, link]() -> Result<std::unique_ptr<store::ObjectStore>> {
          return std::make_unique<store::ModelledLinkStore>(inner, link);
        });
  };
  auto reader = options.modelled_link
                    ? open_behind({.first_byte = options.first_byte,
                                   .read_bytes_per_second = options.link_bytes_per_s})
                    : Cache::Impl::open(cache_options, [&] {
                        return store::open_store(url, options.environment);
                      });
  if (!reader) return std::unexpected(std::move(reader.error()));
  out.reader_ = std::move(*reader);
  if (options.modelled_link) {
    auto writer = open_behind({});
    if (!writer) return std::unexpected(std::move(writer.error()));
    out.writer_ = std::move(*writer);
  }
  return out;
}

Result<void> LayersStore::remove(const std::string& namespace_hex) {
  auto removed =
      cache::remove_under({.loop = *loop_, .store = *store_},
                          cache::namespace_prefix(CacheOptions{}.tenant, namespace_hex), false);
  if (!removed) return std::unexpected(std::move(removed.error()));
  if (!removed->failures.empty()) {
    return std::unexpected(std::move(removed->failures.front().error));
  }
  return {};
}

}  // namespace objectcache::cli
