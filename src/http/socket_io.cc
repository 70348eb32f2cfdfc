#include "http/socket_io.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace objectcache::http {

namespace {

IoResult result_of(ssize_t moved, IoResult::Status when_blocked) {
  if (moved > 0) return {IoResult::Status::kDone, static_cast<std::size_t>(moved), {}};
  if (moved == 0) return {IoResult::Status::kEnd, 0, {}};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {when_blocked, 0, {}};
  return {IoResult::Status::kError, 0, std::generic_category().message(errno)};
}

template <class Call>
ssize_t uninterrupted(Call call) {
  ssize_t moved = call();
  while (moved < 0 && errno == EINTR) moved = call();
  return moved;
}

}  // namespace

IoResult socket_read(int fd, std::span<iovec> buffers) {
  if (buffers.size() == 1) {
    return result_of(
        uninterrupted([&] { return ::recv(fd, buffers[0].iov_base, buffers[0].iov_len, 0); }),
        IoResult::Status::kWantRead);
  }
  msghdr message{};
  message.msg_iov = buffers.data();
  message.msg_iovlen = buffers.size();
  return result_of(uninterrupted([&] { return ::recvmsg(fd, &message, 0); }),
                   IoResult::Status::kWantRead);
}

IoResult socket_write(int fd, std::span<iovec> buffers) {
  msghdr message{};
  message.msg_iov = buffers.data();
  message.msg_iovlen = buffers.size();
  return result_of(uninterrupted([&] { return ::sendmsg(fd, &message, MSG_NOSIGNAL); }),
                   IoResult::Status::kWantWrite);
}

IoResult socket_peek(int fd) {
  char byte = 0;
  return result_of(uninterrupted([&] { return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT); }),
                   IoResult::Status::kWantRead);
}

}  // namespace objectcache::http
