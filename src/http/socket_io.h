#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "objectcache/types.h"

namespace objectcache::http {

/// What one attempt to read or write without waiting came to.
struct IoResult {
  enum class Status : std::uint8_t {
    kDone,       ///< `bytes` > 0 were moved (handshake, connect: it is complete).
    kWantRead,   ///< Nothing moved: try again when the socket can be read.
    kWantWrite,  ///< Nothing moved: try again when the socket can be written.
    kEnd,        ///< The peer sent all it will send.
    kError,      ///< Broken; `problem` says why.
  };
  Status status = Status::kDone;
  std::size_t bytes = 0;
  bool drained = false;  ///< kDone, reading: nothing more is there now; trying again is in vain.
  std::string problem = {};

  [[nodiscard]] bool done() const { return status == Status::kDone; }
  [[nodiscard]] bool want_wait() const {
    return status == Status::kWantRead || status == Status::kWantWrite;
  }
};

/// Plain system calls on a non-blocking stream socket, without signals.
[[nodiscard]] IoResult socket_read(int fd, std::span<iovec> buffers);
[[nodiscard]] IoResult socket_write(int fd, std::span<iovec> buffers);
/// kDone with 1 byte if some are waiting; takes nothing.
[[nodiscard]] IoResult socket_peek(int fd);

}  // namespace objectcache::http
