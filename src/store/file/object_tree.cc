#include "store/file/object_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "store/file/errno_error.h"
#include "store/file/object_names.h"

namespace objectcache::store {
namespace {

constexpr std::string_view kLayoutPrefix = "~objectcache-";
constexpr const char* kTempFolder = "~objectcache-1";
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
/// Making a folder and using it races with those who prune it; each retry lost one such race.
constexpr int kRaceRetries = 1000;

std::int64_t nanoseconds_of(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::string random_name() {
  std::uint64_t words[2] = {};
  // Taken names are refused by O_EXCL, so even without randomness nothing breaks.
  static_cast<void>(::getrandom(words, sizeof words, 0));
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

}  // namespace

ObjectInfo ObjectTree::info_of(ObjectKey key, const struct ::stat& status) {
  const std::int64_t stamp = nanoseconds_of(status.st_mtim);
  return {.key = std::move(key),
          .size_bytes = static_cast<std::uint64_t>(status.st_size),
          .version = {fmt::format("f-{:x}-{:x}-{:x}", status.st_ino,
                                  static_cast<std::uint64_t>(stamp), status.st_size)},
          .modified = std::chrono::system_clock::time_point(
              std::chrono::duration_cast<std::chrono::system_clock::duration>(
                  std::chrono::nanoseconds(stamp)))};
}

// ---------------------------------------------------------------- opening

Result<std::unique_ptr<ObjectTree>> ObjectTree::open(Options options) {
  const CallName name{.action = "open store", .subject = options.url};
  std::unique_ptr<ObjectTree> tree(new ObjectTree(std::move(options)));
  if (auto error = tree->open_root(name)) return std::unexpected(std::move(*error));
  if (auto error = tree->check_layout(name)) return std::unexpected(std::move(*error));
  tree->sweep_temps();
  return tree;
}

ObjectTree::~ObjectTree() {
  if (temp_folder_ >= 0) ::close(temp_folder_);
}

std::optional<Error> ObjectTree::open_root(const CallName& name) {
  const char* path = options_.root.c_str();
  // KV is as sensitive as the prompt it came from: a new cache is its owner's alone.
  if (options_.create_root && ::mkdir(path, 0700) != 0 && errno != EEXIST && errno != EROFS) {
    if (errno == ENOENT) {
      return name.error(ErrorCode::kNotFound,
                        "the directory above it is missing; make it, or mend the path");
    }
    return errno_error(name, "mkdir", errno);
  }
  root_ = FileDescriptor(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root_.is_open()) return errno_error(name, "open", errno);
  // Absent before Linux 5.6 and forbidden in some containers.
  has_openat2_ = true;
  const FileDescriptor probe(open_below(".", kFolderFlags));
  has_openat2_ = probe.is_open();
  return std::nullopt;
}

std::optional<Error> ObjectTree::check_layout(const CallName& name) const {
  DIR* folder = ::fdopendir(::openat(root_.number(), ".", kFolderFlags));
  if (folder == nullptr) return errno_error(name, "open", errno);
  std::string found;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view file = entry->d_name;
    if (file.starts_with(kLayoutPrefix) && file != kTempFolder) found = file;
  }
  ::closedir(folder);
  if (found.empty()) return std::nullopt;
  return name.error(ErrorCode::kIncompatible,
                    fmt::format("its folder '{}' says that another version of ObjectCache laid it "
                                "out; this one reads '{}'",
                                found, kTempFolder));
}

std::optional<Error> ObjectTree::open_temp_folder(const CallName& name) const {
  if (temp_folder_ >= 0) return std::nullopt;
  if (::mkdirat(root_.number(), kTempFolder, 0777) != 0 && errno != EEXIST) {
    return errno_error(name, "mkdir", errno);
  }
  const int folder = ::openat(root_.number(), kTempFolder, kFolderFlags);
  if (folder < 0) return errno_error(name, "open", errno);
  int none = -1;
  if (!temp_folder_.compare_exchange_strong(none, folder)) ::close(folder);
  return std::nullopt;
}

void ObjectTree::sweep_temps() const {
  const int number = ::openat(root_.number(), kTempFolder, kFolderFlags);
  if (number < 0) return;  // No writer was ever here.
  DIR* folder = ::fdopendir(number);
  if (folder == nullptr) {
    ::close(number);
    return;
  }
  const auto oldest = std::chrono::system_clock::now() - options_.stale_temp_age;
  while (const dirent* entry = ::readdir(folder)) {
    struct stat status{};
    if (entry->d_name[0] == '.' ||
        ::fstatat(number, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    // A slow but living writer whose file is swept fails its publish and may try again.
    if (info_of({}, status).modified <= oldest) ::unlinkat(number, entry->d_name, 0);
  }
  ::closedir(folder);
}

// ---------------------------------------------------------------- paths

int ObjectTree::open_below(const std::string& path, int flags) const {
  if (!has_openat2_) return open_below_stepwise(path, flags);
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const char* from = path.empty() ? "." : path.c_str();
  return static_cast<int>(::syscall(SYS_openat2, root_.number(), from, &how, sizeof how));
}

int ObjectTree::open_below_stepwise(const std::string& path, int flags) const {
  FileDescriptor folder;
  std::string_view rest = path;
  int at = root_.number();
  for (std::size_t slash = rest.find('/'); slash != std::string_view::npos;
       slash = rest.find('/')) {
    const std::string component(rest.substr(0, slash));
    folder = FileDescriptor(::openat(at, component.c_str(), O_PATH | kFolderFlags));
    if (!folder.is_open()) return -1;
    at = folder.number();
    rest.remove_prefix(slash + 1);
  }
  return ::openat(at, rest.empty() ? "." : std::string(rest).c_str(), flags | O_NOFOLLOW);
}

FileDescriptor ObjectTree::make_folder(const std::string& path) const {
  for (int i = 0; i < kRaceRetries; ++i) {
    FileDescriptor whole(open_below(path, kFolderFlags));
    if (whole.is_open() || errno != ENOENT) return whole;
    FileDescriptor folder;
    int at = root_.number();
    std::string_view rest = path;
    while (!rest.empty()) {
      const std::size_t slash = std::min(rest.find('/'), rest.size());
      const std::string component(rest.substr(0, slash));
      if (::mkdirat(at, component.c_str(), 0777) != 0 && errno != EEXIST) break;
      folder = FileDescriptor(::openat(at, component.c_str(), kFolderFlags));
      if (!folder.is_open()) break;
      at = folder.number();
      rest.remove_prefix(std::min(slash + 1, rest.size()));
    }
    if (rest.empty()) return folder;
    // ENOENT: someone pruned what was there a moment ago.
    if (errno != ENOENT) return {};
  }
  return {};
}

bool ObjectTree::sync_folders(std::string path) const {
  // All the way up: another process may have made a folder and not synced it yet.
  for (;;) {
    const FileDescriptor folder(open_below(path, kFolderFlags));
    // Pruned in the meantime: then the object is gone for good reason.
    if (!folder.is_open()) return errno == ENOENT;
    if (::fsync(folder.number()) != 0) return false;
    if (path.empty()) return true;
    path = parent_path(path);
  }
}

void ObjectTree::prune(std::string path) const {
  // rmdir() refuses a folder with anything in it, so a racing writer is safe: it either came first,
  // or finds the folder missing and makes it again.
  while (!path.empty()) {
    const std::string parent = parent_path(path);
    const FileDescriptor folder(open_below(parent, kFolderFlags | O_PATH));
    if (!folder.is_open()) return;
    const std::string leaf = path.substr(parent.empty() ? 0 : parent.size() + 1);
    if (::unlinkat(folder.number(), leaf.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return;
    path = parent;
  }
}

// ---------------------------------------------------------------- objects

Result<std::optional<ObjectTree::OpenObject>> ObjectTree::open_object(const CallName& name,
                                                                      const ObjectKey& key) const {
  // Non-blocking, because a pipe of that name would hold the open for ever.
  FileDescriptor file(open_below(file_path(key), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return std::unexpected(errno_error(name, "open", errno));
  }
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) {
    return std::unexpected(errno_error(name, "stat", errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return std::unexpected(name.error(ErrorCode::kIncompatible, "it is not a regular file"));
  }
  return OpenObject{.file = std::move(file), .info = info_of(key, status)};
}

Result<std::optional<ObjectInfo>> ObjectTree::stat_object(const CallName& name,
                                                          const ObjectKey& key) const {
  const FileDescriptor file(open_below(file_path(key), O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return std::unexpected(errno_error(name, "open", errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return std::unexpected(name.error(ErrorCode::kIncompatible, "it is not a regular file"));
  }
  return info_of(key, status);
}

std::optional<Error> ObjectTree::check_space(const CallName& name, std::uint64_t bytes) const {
  struct statvfs space{};
  if (::fstatvfs(root_.number(), &space) != 0) return errno_error(name, "statvfs", errno);
  const std::uint64_t free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  const std::uint64_t total_bytes = std::uint64_t{space.f_blocks} * space.f_frsize;
  const std::uint64_t keep_bytes =
      options_.min_free_bytes.value_or(std::max(std::uint64_t{1} << 30, total_bytes / 50));
  if (free_bytes >= bytes && free_bytes - bytes >= keep_bytes) return std::nullopt;
  return name.error(ErrorCode::kOutOfSpace,
                    fmt::format("{} bytes are free, {} are kept free (min_free), {} are needed; "
                                "free some space or set min_free",
                                free_bytes, keep_bytes, bytes));
}

ObjectTree::TempFile::~TempFile() {
  if (file_.is_open() && !name_.empty()) ::unlinkat(tree_->temp_folder_, name_.c_str(), 0);
}

Result<ObjectTree::TempFile> ObjectTree::create_temp(const CallName& name,
                                                     std::uint64_t bytes) const {
  if (auto error = check_space(name, bytes)) return std::unexpected(std::move(*error));
  if (auto error = open_temp_folder(name)) return std::unexpected(std::move(*error));
  for (;;) {
    std::string leaf = random_name();
    FileDescriptor file(
        ::openat(temp_folder_, leaf.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.is_open()) return TempFile(this, std::move(file), std::move(leaf));
    if (errno != EEXIST) return std::unexpected(errno_error(name, "create", errno));
  }
}

/// 0, or errno.
int ObjectTree::link_or_rename(const TempFile& temp, int folder, const std::string& leaf,
                               PutMode mode) const {
  const char* from = temp.name_.c_str();
  if (mode == PutMode::kReplace) {
    return ::renameat(temp_folder_, from, folder, leaf.c_str()) == 0 ? 0 : errno;
  }
  if (::renameat2(temp_folder_, from, folder, leaf.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Some file systems (NFS) lack that flag; a hard link never replaces anything either.
  if (::linkat(temp_folder_, from, folder, leaf.c_str(), 0) != 0) return errno;
  ::unlinkat(temp_folder_, from, 0);
  return 0;
}

Result<PutAnswer> ObjectTree::publish(const CallName& name, TempFile temp, const ObjectKey& key,
                                      PutMode mode) const {
  // The version is the inode and this stamp. An inode number is used again only after its file is
  // gone, hence for a later stamp; one process never gives the same stamp twice.
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::int64_t last = last_stamp_;
  std::int64_t stamp = 0;
  do {
    stamp = std::max(nanoseconds_of(now), last + 1);
  } while (!last_stamp_.compare_exchange_weak(last, stamp));
  now = {.tv_sec = stamp / 1'000'000'000, .tv_nsec = stamp % 1'000'000'000};
  const timespec times[2] = {now, now};
  struct stat status{};
  if (::futimens(temp.number(), times) != 0 || ::fstat(temp.number(), &status) != 0) {
    return std::unexpected(errno_error(name, "stamp", errno));
  }
  if (options_.fsync && ::fsync(temp.number()) != 0) {
    return std::unexpected(errno_error(name, "fsync", errno));
  }
  const std::string path = file_path(key);
  const std::string parent = parent_path(path);
  const std::string leaf = path.substr(parent.empty() ? 0 : parent.size() + 1);
  for (int i = 0; i < kRaceRetries; ++i) {
    const FileDescriptor folder = make_folder(parent);
    if (!folder.is_open()) return std::unexpected(errno_error(name, "make folder", errno));
    const int failure = link_or_rename(temp, folder.number(), leaf, mode);
    if (failure == EEXIST) return PutAnswer{.outcome = PutOutcome::kAlreadyExists, .version = {}};
    if (failure == 0) {
      temp.name_.clear();
      if (options_.fsync && !sync_folders(parent)) {
        return std::unexpected(errno_error(name, "fsync folder", errno));
      }
      return PutAnswer{.outcome = PutOutcome::kCreated, .version = info_of(key, status).version};
    }
    if (failure != ENOENT) return std::unexpected(errno_error(name, "rename", failure));
    if (::fstat(temp.number(), &status) == 0 && status.st_nlink == 0) break;
  }
  return std::unexpected(name.error(
      ErrorCode::kUnavailable, "the temporary file or its folder was removed by another process"));
}

Result<void> ObjectTree::remove(const CallName& name, const ObjectKey& key) const {
  const std::string path = file_path(key);
  const std::string parent = parent_path(path);
  const FileDescriptor folder(open_below(parent, kFolderFlags | O_PATH));
  if (!folder.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return std::unexpected(errno_error(name, "open", errno));
  }
  const std::string leaf = path.substr(parent.empty() ? 0 : parent.size() + 1);
  if (::unlinkat(folder.number(), leaf.c_str(), 0) != 0 && errno != ENOENT) {
    return std::unexpected(errno_error(name, "unlink", errno));
  }
  prune(parent);
  return {};
}

}  // namespace objectcache::store
