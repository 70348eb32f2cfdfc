#include "store/file/segment_io.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

namespace objectcache::store {
namespace {

/// Pieces handed to one system call.
constexpr std::size_t kPieces = 64;

/// Moves whole pieces, going on after a short transfer. `transfer(iovecs, count, offset)` is
/// preadv or pwritev.
template <class Cursor, class Transfer>
int move_pieces(Cursor& cursor, std::uint64_t offset, std::size_t bytes, int at_end,
                Transfer transfer) {
  std::array<iovec, kPieces> pieces{};
  while (bytes > 0) {
    std::size_t count = 0;
    while (count < kPieces && bytes > 0) {
      const auto piece = cursor.next(bytes);
      if (piece.empty()) return EINVAL;
      pieces[count++] = {.iov_base = const_cast<std::byte*>(piece.data()), .iov_len = piece.size()};
      bytes -= piece.size();
    }
    std::span<iovec> left(pieces.data(), count);
    while (!left.empty()) {
      const ssize_t moved =
          transfer(left.data(), static_cast<int>(left.size()), static_cast<off_t>(offset));
      if (moved < 0 && errno == EINTR) continue;
      if (moved < 0) return errno;
      if (moved == 0) return at_end;
      auto rest = static_cast<std::size_t>(moved);
      offset += rest;
      while (!left.empty() && rest >= left[0].iov_len) {
        rest -= left[0].iov_len;
        left = left.subspan(1);
      }
      if (rest > 0) {
        left[0].iov_base = static_cast<std::byte*>(left[0].iov_base) + rest;
        left[0].iov_len -= rest;
      }
    }
  }
  return 0;
}

}  // namespace

int read_into(int file, std::uint64_t offset, SegmentCursor& to, std::size_t bytes) {
  return move_pieces(to, offset, bytes, ENODATA,
                     [file](const iovec* v, int n, off_t at) { return ::preadv(file, v, n, at); });
}

int write_from(int file, std::uint64_t offset, ConstSegmentCursor& from, std::size_t bytes) {
  return move_pieces(from, offset, bytes, EIO,
                     [file](const iovec* v, int n, off_t at) { return ::pwritev(file, v, n, at); });
}

}  // namespace objectcache::store
