#include "store/file/file_get.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "store/file/errno_error.h"
#include "store/file/segment_io.h"

namespace objectcache::store {
namespace {

/// What O_DIRECT asks for on every file system and disk of today.
constexpr std::uintptr_t kAlignment = 4096;

/// Takes a copy of the cursor: nothing is consumed.
bool is_aligned(std::uint64_t offset, SegmentCursor to, std::size_t bytes) {
  if (offset % kAlignment != 0) return false;
  while (bytes > 0) {
    const Segment piece = to.next(bytes);
    if (piece.empty() || piece.size() % kAlignment != 0 ||
        reinterpret_cast<std::uintptr_t>(piece.data()) % kAlignment != 0) {
      return false;
    }
    bytes -= piece.size();
  }
  return true;
}

}  // namespace

FileGet::FileGet(EventLoop& loop, CallName name, std::shared_ptr<const ObjectTree> tree,
                 std::weak_ptr<WorkerPool> pool, FileTransfer transfer, GetRequest request,
                 GetCompletion done)
    : FileCall(loop, std::move(name), request.deadline),
      tree_(std::move(tree)),
      pool_(std::move(pool)),
      transfer_(transfer),
      request_(std::move(request)),
      done_(std::move(done)),
      cursor_(request_.destination),
      granted_bytes_(request_.grant_bytes) {}

void FileGet::grant(std::uint64_t bytes) {
  bool resume = false;
  {
    const std::lock_guard lock(mutex_);
    granted_bytes_ += std::min(bytes, UINT64_MAX - granted_bytes_);
    resume = parked_ && !decided_ && bytes > 0;
    if (resume) parked_ = false;
  }
  const auto pool = pool_.lock();
  if (resume && pool) enqueue(*pool);
}

void FileGet::work() {
  if (!object_ && !open()) return;
  while (read_bytes_ < request_.length) {
    const std::size_t bytes = next_piece();
    if (bytes == 0) return;
    bool over = false;
    const int failure = read_piece(bytes, over);
    if (over) return;
    if (failure == ENODATA) {
      return decide_error(
          name_.error(ErrorCode::kCorrupt, "the file was cut short while it was read"));
    }
    if (failure != 0) return decide_error(errno_error(name_, "read", failure));
    read_bytes_ += bytes;
    announce();
  }
  answer({.outcome = GetOutcome::kOk,
          .version = object_->info.version,
          .object_bytes = object_->info.size_bytes});
}

bool FileGet::open() {
  if (is_over()) return false;
  auto found = tree_->open_object(name_, request_.key);
  if (!found) {
    decide_error(std::move(found.error()));
    return false;
  }
  object_ = std::move(*found);
  auto outcome = GetOutcome::kOk;
  if (!object_) {
    outcome = GetOutcome::kMissing;
  } else if (request_.version && *request_.version != object_->info.version) {
    outcome = GetOutcome::kVersionChanged;
  } else if (request_.offset + request_.length > object_->info.size_bytes) {
    outcome = GetOutcome::kOutOfRange;
  }
  if (outcome == GetOutcome::kOk) return true;
  answer({.outcome = outcome});
  return false;
}

std::size_t FileGet::next_piece() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t end =
      std::min({request_.length, granted_bytes_, read_bytes_ + transfer_.piece_bytes});
  if (end == read_bytes_) parked_ = true;
  return static_cast<std::size_t>(end - read_bytes_);
}

int FileGet::read_file(std::uint64_t offset, SegmentCursor& to, std::size_t bytes) {
  const int file = object_->file.number();
  if (transfer_.direct) {
    const bool wanted = is_aligned(offset, to, bytes);
    // A file system without direct reads refuses the flag, and the read goes the common way.
    if (wanted != reads_direct_ &&
        ::fcntl(file, F_SETFL, O_RDONLY | (wanted ? O_DIRECT : 0)) == 0) {
      reads_direct_ = wanted;
    }
  }
  SegmentCursor again = to;
  const int failure = read_into(file, offset, to, bytes);
  if (failure != EINVAL || !reads_direct_) return failure;
  // It asks for more alignment than we knew.
  if (::fcntl(file, F_SETFL, O_RDONLY) != 0) return failure;
  reads_direct_ = false;
  to = again;
  return read_into(file, offset, to, bytes);
}

int FileGet::read_piece(std::size_t bytes, bool& over) {
  const std::uint64_t offset = request_.offset + read_bytes_;
  if (!transfer_.isolate) {
    over = !begin_touch();
    if (over) return 0;
    const int failure = read_file(offset, cursor_, bytes);
    over = !end_touch();
    return failure;
  }
  const std::unique_ptr<std::byte[]> buffer(new std::byte[bytes]);
  const Segment whole(buffer.get(), bytes);
  SegmentCursor own(std::span(&whole, 1));
  if (const int failure = read_file(offset, own, bytes)) return failure;
  over = !begin_touch();
  if (over) return 0;
  copy_out(cursor_, whole);
  over = !end_touch();
  return 0;
}

void FileGet::announce() {
  const std::lock_guard lock(mutex_);
  if (decided_ || !request_.on_bytes) return;
  final_bytes_ = read_bytes_;
  if (version_.text.empty()) version_ = object_->info.version;
  if (std::exchange(progress_posted_, true)) return;
  loop_.post([self = shared_from_this()] { static_cast<FileGet&>(*self).deliver_progress(); });
}

void FileGet::deliver_progress() {
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    progress_posted_ = false;
    bytes = final_bytes_;
  }
  if (completed_ || bytes <= announced_bytes_) return;
  announced_bytes_ = bytes;
  request_.on_bytes(bytes, version_);
}

void FileGet::answer(GetAnswer answer) {
  decide([this, answer = std::move(answer)]() mutable { finish(std::move(answer)); });
}

void FileGet::complete(Error error) { finish(std::unexpected(std::move(error))); }

void FileGet::finish(Result<GetAnswer> result) {
  request_.on_bytes = nullptr;  // Here, so that what it holds does not end on a worker.
  std::exchange(done_, nullptr)(std::move(result));
}

}  // namespace objectcache::store
