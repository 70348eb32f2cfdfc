#pragma once

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/file/file_descriptor.h"
#include "store/object_store.h"
#include "store/request_checks.h"

namespace objectcache::store {

/// Objects as files below one directory: the blocking half of the file store.
///
/// The object "a/b" is the file "a/b@": the '@', which no key can hold, lets "a" and "a/b" exist
/// side by side. Bodies are written to "~objectcache-1/<random>" below the same directory and then
/// renamed, so that a reader sees a whole object or none. The name of that folder is also the
/// version of this layout; a directory of another version is refused.
///
/// Symbolic links are followed on the way to the root, never below it.
///
/// Threads: any; several processes may share a directory.
class ObjectTree {
 public:
  struct Options {
    std::string root;
    std::string url;          ///< For messages.
    bool create_root = true;  ///< Make the directory if only its last component is missing.
    bool fsync = false;       ///< A published object survives a power failure.
    /// A body that would leave less free is refused. Empty: 1 GiB, or 2 % of the file system where
    /// that is more.
    std::optional<std::uint64_t> min_free_bytes{};
    /// Temporary files of dead writers are removed at open once they are that old.
    std::chrono::seconds stale_temp_age = std::chrono::hours(1);
  };
  /// An object opened for reading. The descriptor keeps this version's bytes, whatever happens to
  /// the name.
  struct OpenObject {
    FileDescriptor file;
    ObjectInfo info;
  };
  /// A body under way; removed when destroyed unless it was published.
  class TempFile {
   public:
    TempFile(TempFile&&) noexcept = default;
    ~TempFile();
    [[nodiscard]] int number() const { return file_.number(); }

   private:
    friend class ObjectTree;
    TempFile(const ObjectTree* tree, FileDescriptor file, std::string name)
        : tree_(tree), file_(std::move(file)), name_(std::move(name)) {}
    const ObjectTree* tree_;
    FileDescriptor file_;
    std::string name_;  // Empty: published.
  };
  /// Asked now and then by long work: true ends it early.
  using ShouldStop = std::function<bool()>;

  [[nodiscard]] static Result<std::unique_ptr<ObjectTree>> open(Options options);
  ~ObjectTree();

  /// Longest component of a key: a file name has 255 bytes, one is the '@'.
  static constexpr std::uint32_t kComponentBytesMax = 254;

  /// Empty: no such object.
  [[nodiscard]] Result<std::optional<OpenObject>> open_object(const CallName& name,
                                                              const ObjectKey& key) const;
  [[nodiscard]] Result<std::optional<ObjectInfo>> stat_object(const CallName& name,
                                                              const ObjectKey& key) const;
  /// Checks that `bytes` fit. The caller writes them and then calls publish().
  [[nodiscard]] Result<TempFile> create_temp(const CallName& name, std::uint64_t bytes) const;
  [[nodiscard]] Result<PutAnswer> publish(const CallName& name, TempFile temp, const ObjectKey& key,
                                          PutMode mode) const;
  /// Also removes the folders that it leaves empty.
  [[nodiscard]] Result<void> remove(const CallName& name, const ObjectKey& key) const;
  /// If stopped: a page cut short, which the caller drops.
  [[nodiscard]] Result<ListPage> list(const CallName& name, const ListRequest& request,
                                      const ShouldStop& should_stop) const;

  /// The version and size that `stat` (a struct stat) stands for.
  [[nodiscard]] static ObjectInfo info_of(ObjectKey key, const struct ::stat& status);

 private:
  explicit ObjectTree(Options options) : options_(std::move(options)) {}

  [[nodiscard]] std::optional<Error> open_root(const CallName& name);
  [[nodiscard]] std::optional<Error> check_layout(const CallName& name) const;
  [[nodiscard]] std::optional<Error> open_temp_folder(const CallName& name) const;
  [[nodiscard]] std::optional<Error> check_space(const CallName& name, std::uint64_t bytes) const;
  void sweep_temps() const;
  /// Like openat(2) on the root, but no symbolic link is followed. -1 and errno.
  [[nodiscard]] int open_below(const std::string& path, int flags) const;
  [[nodiscard]] int open_below_stepwise(const std::string& path, int flags) const;
  /// The folder of a key, made if it is missing. Not open: errno tells.
  [[nodiscard]] FileDescriptor make_folder(const std::string& path) const;
  [[nodiscard]] int link_or_rename(const TempFile& temp, int folder, const std::string& leaf,
                                   PutMode mode) const;
  [[nodiscard]] bool sync_folders(std::string path) const;
  void prune(std::string path) const;

  const Options options_;
  FileDescriptor root_;
  bool has_openat2_ = false;
  mutable std::atomic<int> temp_folder_{-1};  // Opened by the first writer; closed with the tree.
  mutable std::atomic<std::int64_t> last_stamp_{0};  // Of published files: nanoseconds, unique.
};

}  // namespace objectcache::store
