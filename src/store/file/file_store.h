#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/object_store.h"

namespace objectcache::store {

class ObjectTree;
class WorkerPool;
struct FileTransfer;

/// Objects as files below one directory: a complete cache of one machine, or of several that share
/// a file system. Safe between processes; killed at any point it leaves whole objects only. After
/// a power failure an object of the last seconds may be empty, short or full of zeros unless
/// `fsync` is set; the checks of whoever reads it turn that into a miss.
///
/// Threads: any number of loops at once, see ObjectStore. System calls that block run on a bounded
/// pool of threads.
/// Deadlines: a cancel or deadline completes at once, except while a read(2) or write(2) of at most
/// `piece_bytes` is using the caller's memory; a system call cannot be taken back, so the
/// completion then waits for it. On a file system that may hang (NFS), `isolate` lifts this: bytes
/// pass through a buffer of the worker, for one more copy in memory.
/// Limits: Options::threads workers, Options::queued_max waiting calls; beyond, kLimitExceeded.
class FileStore final : public ObjectStore {
 public:
  struct Options {
    std::string directory;
    bool create_directory = true;  ///< If only its last component is missing.
    bool fsync = false;            ///< A finished PUT survives a power failure.
    /// A PUT that would leave less free space fails with kOutOfSpace. Empty: 1 GiB, or 2 % of the
    /// file system where that is more.
    std::optional<std::uint64_t> min_free_bytes{};
    bool isolate = false;  ///< See above.
    /// Reads past the page cache where offset, length and memory are multiples of 4 KiB: a third of
    /// the CPU time for objects that are not in memory, but none is kept there.
    bool direct = false;
    std::size_t threads = 8;
    std::size_t queued_max = 16'384;
    std::size_t piece_bytes = std::size_t{1} << 20;
    std::chrono::seconds stale_temp_age = std::chrono::hours(1);
  };

  /// kNotFound: the directory above is missing. kPermissionDenied, kIncompatible: another layout.
  [[nodiscard]] static Result<std::unique_ptr<FileStore>> open(Options options);
  ~FileStore() override;

  OperationHandle get(EventLoop& loop, GetRequest request, GetCompletion done) override;
  OperationHandle put(EventLoop& loop, PutRequest request, PutCompletion done) override;
  OperationHandle head(EventLoop& loop, ObjectKey key, TimePoint deadline,
                       HeadCompletion done) override;
  OperationHandle list(EventLoop& loop, ListRequest request, ListCompletion done) override;
  OperationHandle remove(EventLoop& loop, ObjectKey key, TimePoint deadline,
                         RemoveCompletion done) override;
  OperationHandle remove_many(EventLoop& loop, std::vector<ObjectKey> keys, TimePoint deadline,
                              RemoveManyCompletion done) override;
  [[nodiscard]] const StoreTraits& traits() const override { return traits_; }

 private:
  FileStore(Options options, std::shared_ptr<const ObjectTree> tree);
  [[nodiscard]] FileTransfer transfer() const;
  template <class T, class Done, class Work>
  OperationHandle start_short(EventLoop& loop, std::string_view action, std::string_view key,
                              TimePoint deadline, std::optional<std::string> problem, Done done,
                              Work work);

  const Options options_;
  StoreTraits traits_;
  std::shared_ptr<const ObjectTree> tree_;
  std::shared_ptr<WorkerPool> pool_;
};

}  // namespace objectcache::store
