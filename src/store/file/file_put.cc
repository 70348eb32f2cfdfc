#include "store/file/file_put.h"

#include <algorithm>

#include "store/file/errno_error.h"
#include "store/file/segment_io.h"

namespace objectcache::store {

FilePut::FilePut(EventLoop& loop, CallName name, std::shared_ptr<const ObjectTree> tree,
                 FileTransfer transfer, PutRequest request, PutCompletion done)
    : FileCall(loop, std::move(name), request.deadline),
      tree_(std::move(tree)),
      transfer_(transfer),
      request_(std::move(request)),
      bytes_(body_bytes(request_.body)),
      done_(std::move(done)),
      cursor_(request_.body) {}

void FilePut::work() {
  if (is_over()) return;
  if (request_.mode == PutMode::kIfAbsent) {
    // Spares the writing; publish() decides.
    const auto existing = tree_->stat_object(name_, request_.key);
    if (!existing) return decide_error(existing.error());
    if (*existing) return answer({.outcome = PutOutcome::kAlreadyExists});
  }
  auto temp = tree_->create_temp(name_, bytes_);
  if (!temp) return decide_error(std::move(temp.error()));
  if (!write_body(temp->number())) return;
  if (is_over()) return;
  auto result = tree_->publish(name_, std::move(*temp), request_.key, request_.mode);
  if (!result) return decide_error(std::move(result.error()));
  answer(std::move(*result));
}

bool FilePut::write_body(int file) {
  for (std::uint64_t offset = 0; offset < bytes_;) {
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes_ - offset, transfer_.piece_bytes));
    bool over = false;
    const int failure = write_piece(file, offset, bytes, over);
    if (over) return false;
    if (failure != 0) {
      decide_error(errno_error(name_, "write", failure));
      return false;
    }
    offset += bytes;
  }
  return true;
}

int FilePut::write_piece(int file, std::uint64_t offset, std::size_t bytes, bool& over) {
  if (!transfer_.isolate) {
    over = !begin_touch();
    if (over) return 0;
    const int failure = write_from(file, offset, cursor_, bytes);
    over = !end_touch();
    return failure;
  }
  const std::unique_ptr<std::byte[]> buffer(new std::byte[bytes]);
  over = !begin_touch();
  if (over) return 0;
  copy_in({buffer.get(), bytes}, cursor_);
  over = !end_touch();
  if (over) return 0;
  const ConstSegment whole(buffer.get(), bytes);
  ConstSegmentCursor own(std::span(&whole, 1));
  return write_from(file, offset, own, bytes);
}

void FilePut::answer(PutAnswer answer) {
  decide([this, answer = std::move(answer)]() mutable {
    std::exchange(done_, nullptr)(std::move(answer));
  });
}

void FilePut::complete(Error error) {
  std::exchange(done_, nullptr)(std::unexpected(std::move(error)));
}

}  // namespace objectcache::store
