#include "http/socket_io.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace objectcache::http {

namespace {

IoResult result_of(ssize_t moved, IoResult::Status when_blocked) {
  if (moved > 0) {
    return {.status = IoResult::Status::kDone, .bytes = static_cast<std::size_t>(moved)};
  }
  if (moved == 0) return {.status = IoResult::Status::kEnd};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {.status = when_blocked};
  return {.status = IoResult::Status::kError, .problem = std::generic_category().message(errno)};
}

template <class Call>
ssize_t uninterrupted(Call call) {
  ssize_t moved = call();
  while (moved < 0 && errno == EINTR) moved = call();
  return moved;
}

}  // namespace

IoResult socket_read(int fd, std::span<iovec> buffers) {
  std::size_t wanted = 0;
  for (const iovec& buffer : buffers) wanted += buffer.iov_len;
  msghdr message{};
  message.msg_iov = buffers.data();
  message.msg_iovlen = buffers.size();
  IoResult result = result_of(uninterrupted([&] {
                                return buffers.size() == 1
                                           ? ::recv(fd, buffers[0].iov_base, wanted, 0)
                                           : ::recvmsg(fd, &message, 0);
                              }),
                              IoResult::Status::kWantRead);
  result.drained = result.bytes < wanted;
  return result;
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
