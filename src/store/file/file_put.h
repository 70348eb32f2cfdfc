#pragma once

#include <memory>

#include "store/file/file_call.h"
#include "store/file/file_get.h"
#include "store/file/object_tree.h"
#include "store/segment_cursor.h"

namespace objectcache::store {

/// A running PUT of a file store: one worker writes the body to a temporary file and publishes it.
class FilePut final : public FileCall {
 public:
  FilePut(EventLoop& loop, CallName name, std::shared_ptr<const ObjectTree> tree,
          FileTransfer transfer, PutRequest request, PutCompletion done);

 private:
  void work() override;
  void complete(Error error) override;
  /// False: the call is over, or decided.
  [[nodiscard]] bool write_body(int file);
  /// 0, or errno; sets `over` where the call has ended meanwhile.
  [[nodiscard]] int write_piece(int file, std::uint64_t offset, std::size_t bytes, bool& over);
  void answer(PutAnswer answer);

  const std::shared_ptr<const ObjectTree> tree_;
  const FileTransfer transfer_;
  PutRequest request_;
  const std::uint64_t bytes_;
  PutCompletion done_;         // Loop only.
  ConstSegmentCursor cursor_;  // The worker's.
};

}  // namespace objectcache::store
