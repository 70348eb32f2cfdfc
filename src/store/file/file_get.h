#pragma once

#include <memory>

#include "store/file/file_call.h"
#include "store/file/object_tree.h"
#include "store/segment_cursor.h"

namespace objectcache::store {

/// How the calls of one store move bytes.
struct FileTransfer {
  std::size_t piece_bytes = std::size_t{1} << 20;
  /// Through a buffer of the worker, so that a hung file system cannot hold a completion back.
  bool isolate = false;
  /// Reads past the page cache where offset, length and memory are multiples of 4 KiB.
  bool direct = false;
};

/// A running GET of a file store: pieces are read on a worker into the caller's memory and
/// announced on the loop. While it waits for a grant it keeps the file open, but no worker.
class FileGet final : public FileCall {
 public:
  FileGet(EventLoop& loop, CallName name, std::shared_ptr<const ObjectTree> tree,
          std::weak_ptr<WorkerPool> pool, FileTransfer transfer, GetRequest request,
          GetCompletion done);
  void grant(std::uint64_t bytes) override;

 private:
  void work() override;
  void complete(Error error) override;
  void finish(Result<GetAnswer> result);
  [[nodiscard]] bool open();
  void answer(GetAnswer answer);
  /// Bytes of the next piece; 0: parked until grant().
  [[nodiscard]] std::size_t next_piece();
  /// 0, or errno; sets `over` where the call has ended meanwhile.
  [[nodiscard]] int read_piece(std::size_t bytes, bool& over);
  /// read_into(), past the page cache where that is wanted and possible.
  [[nodiscard]] int read_file(std::uint64_t offset, SegmentCursor& to, std::size_t bytes);
  void announce();
  void deliver_progress();

  const std::shared_ptr<const ObjectTree> tree_;
  const std::weak_ptr<WorkerPool> pool_;
  const FileTransfer transfer_;
  GetRequest request_;
  GetCompletion done_;  // Loop only.

  // The worker's, one at a time.
  SegmentCursor cursor_;
  std::optional<ObjectTree::OpenObject> object_;
  std::uint64_t read_bytes_ = 0;
  bool reads_direct_ = false;  // The file's O_DIRECT flag.

  // Guarded by mutex_.
  std::uint64_t granted_bytes_;
  bool parked_ = false;
  std::uint64_t final_bytes_ = 0;
  ObjectVersion version_;
  bool progress_posted_ = false;

  std::uint64_t announced_bytes_ = 0;  // Loop only.
};

}  // namespace objectcache::store
