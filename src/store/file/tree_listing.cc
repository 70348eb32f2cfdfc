// ObjectTree::list: walks the folders in the order of the keys, one page at a time.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "store/file/errno_error.h"
#include "store/file/object_names.h"
#include "store/file/object_tree.h"

namespace objectcache::store {
namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
/// Entries of one folder that are held and sorted at once; larger folders are read several times.
constexpr std::size_t kBatchEntries = 8192;

/// Closes a folder that is read.
class FolderReader {
 public:
  explicit FolderReader(int folder) {
    const int number = ::openat(folder, ".", kFolderFlags);
    if (number < 0) return;
    stream_ = ::fdopendir(number);
    if (stream_ == nullptr) ::close(number);
  }
  ~FolderReader() {
    if (stream_ != nullptr) ::closedir(stream_);
  }
  FolderReader(const FolderReader&) = delete;
  FolderReader& operator=(const FolderReader&) = delete;
  [[nodiscard]] bool is_open() const { return stream_ != nullptr; }
  [[nodiscard]] const dirent* next() { return ::readdir(stream_); }
  [[nodiscard]] int number() const { return ::dirfd(stream_); }

 private:
  DIR* stream_ = nullptr;
};

/// One walk. `on_key` and `on_folder` hear of keys behind `start_after` in their order.
class TreeWalk {
 public:
  enum class Next : std::uint8_t { kGoOn, kStop };
  struct Visitor {
    /// An object: its folder, its key, its file name.
    std::function<Next(int folder, const std::string& key, const std::string& file_name)> on_key;
    /// A folder that may hold keys; its path ends with '/'. Empty: walk into every folder.
    std::function<Next(const FileDescriptor& folder, const std::string& path)> on_folder{};
  };

  TreeWalk(const CallName& name, std::string_view start_after,
           const ObjectTree::ShouldStop& should_stop)
      : name_(name), start_after_(start_after), should_stop_(should_stop) {}

  /// Walks the folder `path` (empty, or ending with '/'), only names that start with `partial`.
  Next walk(int folder, const std::string& path, std::string_view partial, const Visitor& visitor) {
    std::string after;
    for (;;) {
      bool more = false;
      const auto batch = next_batch(folder, path, partial, after, more);
      if (!batch) return Next::kStop;
      for (const TreeEntry& entry : *batch) {
        if (should_stop_()) return Next::kStop;
        if (visit(folder, path + entry.sort_key, entry, visitor) == Next::kStop) return Next::kStop;
      }
      if (!more) return Next::kGoOn;
      after = batch->back().sort_key;
    }
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  Next visit(int folder, const std::string& path, const TreeEntry& entry, const Visitor& visitor) {
    if (!entry.is_folder()) return visitor.on_key(folder, path, entry.sort_key + kObjectMark);
    const std::string leaf = entry.sort_key.substr(0, entry.sort_key.size() - 1);
    const FileDescriptor below(::openat(folder, leaf.c_str(), kFolderFlags));
    if (!below.is_open()) {
      // Gone since, or not a folder after all.
      if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return Next::kGoOn;
      error_ = errno_error(name_, "open " + path, errno);
      return Next::kStop;
    }
    if (visitor.on_folder) return visitor.on_folder(below, path);
    return walk(below.number(), path, {}, visitor);
  }

  /// Can `path` (a key, or with '/' at its end all that begins with it) lie behind start_after?
  [[nodiscard]] bool lies_behind(std::string_view path, bool is_folder) const {
    return path > start_after_ || (is_folder && start_after_.starts_with(path));
  }

  /// The smallest entries behind `after`, sorted. `more`: there are others behind them.
  std::optional<std::vector<TreeEntry>> next_batch(int folder, const std::string& path,
                                                   std::string_view partial,
                                                   const std::string& after, bool& more) {
    FolderReader reader(folder);
    if (!reader.is_open()) {
      if (errno == ENOENT) return std::vector<TreeEntry>();
      error_ = errno_error(name_, "open " + path, errno);
      return std::nullopt;
    }
    std::vector<TreeEntry> heap;  // The largest one first.
    while (const dirent* found = reader.next()) {
      const std::string_view file_name = found->d_name;
      if (!file_name.starts_with(partial)) continue;
      auto entry = tree_entry(file_name, is_folder(reader.number(), *found));
      // A partial name could otherwise end in the mark of an object.
      if (!entry || !entry->sort_key.starts_with(partial) || entry->sort_key <= after) continue;
      if (!lies_behind(path + entry->sort_key, entry->is_folder())) continue;
      if (heap.size() == kBatchEntries) {
        more = true;
        if (*entry > heap.front()) continue;
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
      }
      heap.push_back(std::move(*entry));
      std::push_heap(heap.begin(), heap.end());
    }
    std::sort_heap(heap.begin(), heap.end());
    return heap;
  }
  static bool is_folder(int folder, const dirent& entry) {
    if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
    struct stat status{};
    return ::fstatat(folder, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
  }

  const CallName& name_;
  const std::string_view start_after_;
  const ObjectTree::ShouldStop& should_stop_;
  std::optional<Error> error_;
};

/// Collects the entries of one page and stops the walk behind it.
class PageBuilder {
 public:
  explicit PageBuilder(std::uint32_t entries_max) : entries_max_(entries_max) {}
  /// False: the page is full, and something follows it.
  [[nodiscard]] bool has_room() {
    if (page_.entries.size() + page_.common_prefixes.size() < entries_max_) return true;
    page_.next_start_after = last_;
    return false;
  }
  void add(ObjectInfo info) {
    last_ = info.key.text;
    page_.entries.push_back(std::move(info));
  }
  void add_common_prefix(const std::string& path) {
    last_ = start_after_common_prefix(path);
    page_.common_prefixes.push_back(path);
  }
  [[nodiscard]] ListPage take() { return std::move(page_); }

 private:
  const std::uint32_t entries_max_;
  ListPage page_;
  std::string last_;
};

}  // namespace

Result<ListPage> ObjectTree::list(const CallName& name, const ListRequest& request,
                                  const ShouldStop& should_stop) const {
  const std::string_view prefix = request.prefix;
  const std::size_t slash = prefix.rfind('/');
  const std::string parent(prefix.substr(0, slash == std::string_view::npos ? 0 : slash));
  const std::string path = slash == std::string_view::npos ? "" : parent + "/";
  if (slash != std::string_view::npos && object_key_problem({parent})) return ListPage();
  const FileDescriptor top(open_below(parent, kFolderFlags));
  if (!top.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return ListPage();
    return std::unexpected(errno_error(name, "open", errno));
  }
  using Next = TreeWalk::Next;
  PageBuilder page(request.entries_max);
  TreeWalk walk(name, request.start_after, should_stop);
  TreeWalk::Visitor visitor;
  visitor.on_key = [&](int folder, const std::string& key, const std::string& file_name) {
    struct stat status{};
    if (::fstatat(folder, file_name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode)) {
      return Next::kGoOn;  // Gone since, or not ours.
    }
    if (!page.has_room()) return Next::kStop;
    page.add(info_of({key}, status));
    return Next::kGoOn;
  };
  if (request.delimiter != 0) {
    visitor.on_folder = [&](const FileDescriptor& folder, const std::string& folder_path) {
      // Shown only if at least one key lies below.
      bool found = false;
      TreeWalk::Visitor find_one;
      find_one.on_key = [&](int, const std::string&, const std::string&) {
        found = true;
        return Next::kStop;
      };
      const Next next = walk.walk(folder.number(), folder_path, {}, find_one);
      if (!found) return next;
      if (!page.has_room()) return Next::kStop;
      page.add_common_prefix(folder_path);
      return Next::kGoOn;
    };
  }
  const std::string_view partial = prefix.substr(path.size());
  walk.walk(top.number(), path, partial, visitor);
  if (walk.error()) return std::unexpected(*walk.error());
  return page.take();
}

}  // namespace objectcache::store
