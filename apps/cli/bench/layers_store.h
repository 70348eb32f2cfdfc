#pragma once

#include <memory>
#include <string>

#include "http/reactor.h"
#include "objectcache/cache.h"
#include "store/object_store.h"

namespace objectcache::cli {

/// A store with up to two caches on it: one to read through, perhaps behind a modelled link, and
/// one to write through, without.
///
/// Threads: one.
class LayersStore {
 public:
  struct Options {
    std::string url;  ///< "file:" alone: a folder of its own, gone with this.
    bool modelled_link = false;
    double link_bytes_per_s = 0;
    Duration first_byte{};
    Environment environment;
  };
  [[nodiscard]] static Result<LayersStore> open(const Options& options);
  LayersStore(LayersStore&&) noexcept;
  LayersStore& operator=(LayersStore&&) = delete;
  LayersStore(const LayersStore&) = delete;
  LayersStore& operator=(const LayersStore&) = delete;
  ~LayersStore();

  [[nodiscard]] Cache& reader() { return *reader_; }
  [[nodiscard]] Cache& writer() { return writer_ ? *writer_ : *reader_; }
  /// Removes what was written under this namespace.
  [[nodiscard]] Result<void> remove(const std::string& namespace_hex);

 private:
  class Folder;
  LayersStore();

  std::unique_ptr<Folder> folder_;
  std::unique_ptr<http::Reactor> loop_;
  std::unique_ptr<store::ObjectStore> store_;  // Behind the link; outlives the caches.
  std::unique_ptr<Cache> reader_;
  std::unique_ptr<Cache> writer_;
};

}  // namespace objectcache::cli
