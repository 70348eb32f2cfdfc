#include "http/transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <system_error>
#include <utility>

#include "http/asio.h"
#include "http/tls.h"

namespace objectcache::http {

using Descriptor = boost::asio::posix::stream_descriptor;
using Status = IoResult::Status;

struct Transport::Impl {
  explicit Impl(Reactor& reactor) : socket(ReactorAccess::context(reactor)) {}

  Descriptor socket;
  std::unique_ptr<TlsStream> tls;
  // Outlive this object inside the waits.
  std::shared_ptr<bool> read_awaited = std::make_shared<bool>(false);
  std::shared_ptr<bool> write_awaited = std::make_shared<bool>(false);

  int fd() { return socket.native_handle(); }
  template <class Move>
  static IoResult each(std::span<iovec> buffers, Move move);
};

Transport::Transport(Reactor& reactor) : impl_(std::make_unique<Impl>(reactor)) {}
Transport::~Transport() = default;

std::string Transport::open(const SocketAddress& address, std::size_t receive_buffer_bytes) {
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::generic_category().message(errno);
  boost::system::error_code error;
  impl_->socket.assign(fd, error);
  if (error) {
    ::close(fd);
    return error.message();
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (receive_buffer_bytes > 0) {
    const int bytes = static_cast<int>(std::min<std::size_t>(receive_buffer_bytes, 1U << 30));
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  const auto* to = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(fd, to, address.length) != 0 && errno != EINPROGRESS) {
    return std::generic_category().message(errno);
  }
  return {};
}

IoResult Transport::finish_connect() {
  int code = 0;
  socklen_t size = sizeof code;
  ::getsockopt(impl_->fd(), SOL_SOCKET, SO_ERROR, &code, &size);
  if (code == 0) return {};
  return {.status = Status::kError, .problem = std::generic_category().message(code)};
}

Result<void> Transport::start_tls(std::shared_ptr<TlsContext> context, std::string name) {
  auto tls = TlsStream::create_client(std::move(context), impl_->fd(), std::move(name));
  if (!tls) return std::unexpected(std::move(tls).error());
  impl_->tls = std::move(*tls);
  return {};
}

IoResult Transport::handshake() { return impl_->tls->handshake(); }
bool Transport::certificate_refused() const { return impl_->tls->certificate_refused(); }
bool Transport::tls_session_reused() const { return impl_->tls && impl_->tls->session_reused(); }

// TLS moves one buffer and one record at a time. What stops it after some bytes were moved comes
// up again with the next call.
template <class Move>
IoResult Transport::Impl::each(std::span<iovec> buffers, Move move) {
  IoResult result;
  std::size_t moved = 0;
  for (const iovec& buffer : buffers) {
    Segment rest(static_cast<std::byte*>(buffer.iov_base), buffer.iov_len);
    while (!rest.empty()) {
      result = move(rest);
      if (!result.done()) {
        if (moved == 0) return result;
        return {.status = Status::kDone,
                .bytes = moved,
                .drained = result.status == Status::kWantRead,
                .problem = {}};
      }
      moved += result.bytes;
      rest = rest.subspan(result.bytes);
    }
  }
  return {.status = Status::kDone, .bytes = moved, .drained = false, .problem = {}};
}

IoResult Transport::read(std::span<iovec> buffers) {
  if (!impl_->tls) return socket_read(impl_->fd(), buffers);
  return Impl::each(buffers, [this](Segment into) { return impl_->tls->read(into); });
}

IoResult Transport::write(std::span<iovec> buffers) {
  if (!impl_->tls) return socket_write(impl_->fd(), buffers);
  return Impl::each(buffers, [this](Segment from) { return impl_->tls->write(from); });
}

IoResult Transport::peek() { return impl_->tls ? impl_->tls->peek() : socket_peek(impl_->fd()); }

bool Transport::buffered() const { return impl_->tls && impl_->tls->pending() > 0; }

void Transport::wait(IoResult::Status what, std::shared_ptr<Waiter> waiter) {
  const bool write = what == Status::kWantWrite;
  const std::shared_ptr<bool>& awaited = write ? impl_->write_awaited : impl_->read_awaited;
  if (std::exchange(*awaited, true)) return;
  impl_->socket.async_wait(
      write ? Descriptor::wait_write : Descriptor::wait_read,
      [awaited, waiter = std::move(waiter)](const boost::system::error_code& error) {
        *awaited = false;
        if (!error) waiter->ready();
      });
}

void Transport::close(bool politely) {
  if (impl_->tls && politely) impl_->tls->shutdown();
  impl_->tls.reset();
  boost::system::error_code ignored;
  impl_->socket.close(ignored);
}

}  // namespace objectcache::http
