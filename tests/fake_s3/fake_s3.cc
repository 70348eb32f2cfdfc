#include "fake_s3/fake_s3.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>

#include "fake_s3/session.h"
#include "fake_s3/wire.h"

namespace objectcache::fake_s3 {
namespace {

struct FreeSslContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, FreeSslContext>;

Result<SslContext> make_ssl_context(const TlsFiles& files) {
  SslContext context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* c = context.get();
  if (c == nullptr ||
      SSL_CTX_use_certificate_chain_file(c, files.server_certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(c, files.server_key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return fail(ErrorCode::kInvalidArgument, "cannot use the certificate", "start fake S3",
                files.server_certificate.string());
  }
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  return context;
}

}  // namespace

class FakeS3::Impl {
 public:
  explicit Impl(FakeS3Options options) : shared(std::move(options)) {}
  ~Impl() {
    stop();
    if (listen_fd_ >= 0) ::close(listen_fd_);
    if (shared.stop_fd >= 0) ::close(shared.stop_fd);
  }

  Result<void> start() {
    const auto& options = shared.options;
    if (options.tls) {
      auto context = make_ssl_context(*options.tls);
      if (!context) return std::unexpected(context.error());
      ssl_ = std::move(*context);
    }
    for (const std::string& bucket : options.buckets) shared.objects.create_bucket(bucket);
    shared.stop_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    listen_fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options.port);
    const int on = 1;
    ::setsockopt(listen_fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    auto* where = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (shared.stop_fd < 0 ||
        ::inet_pton(AF_INET, options.address.c_str(), &address.sin_addr) != 1 ||
        ::bind(listen_fd_, where, size) != 0 || ::listen(listen_fd_, 512) != 0 ||
        ::getsockname(listen_fd_, where, &size) != 0) {
      return fail(ErrorCode::kUnavailable, fmt::format("cannot listen: {}", std::strerror(errno)),
                  "start fake S3", fmt::format("{}:{}", options.address, options.port));
    }
    port = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
    return {};
  }

  void stop() {
    if (stopping_.exchange(true)) return;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(shared.stop_fd, &one, sizeof one));
    ::shutdown(listen_fd_, SHUT_RDWR);
    if (acceptor_.joinable()) acceptor_.join();
    drop_connections();
    std::list<Connection> last;
    {
      const std::lock_guard lock(mutex_);
      last.swap(connections_);
    }
    for (Connection& c : last) c.thread.join();
  }

  void drop_connections() {
    const std::lock_guard lock(mutex_);
    for (Connection& c : connections_) {
      if (c.wire) c.wire->interrupt();
    }
  }

  [[nodiscard]] std::size_t open() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::ranges::count_if(connections_, [](const Connection& c) { return !c.done; }));
  }

  SharedState shared;
  std::uint16_t port = 0;
  std::atomic<std::uint64_t> accepted{0};

 private:
  struct Connection {
    std::thread thread;
    std::unique_ptr<Wire> wire;
    std::atomic<bool> done{false};
  };

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0 && stopping_) return;
      if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (fd < 0) {
        // Out of descriptors: let some connections end.
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
      reap();
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const std::lock_guard lock(mutex_);
      if (stopping_ || connections_.size() >= shared.options.connections_max) {
        ::close(fd);
        continue;
      }
      start_connection(fd);
    }
  }

  // Requires mutex_.
  void start_connection(int fd) {
    SSL* ssl = nullptr;
    if (ssl_) {
      ssl = SSL_new(ssl_.get());
      SSL_set_fd(ssl, fd);
    }
    Connection& c = connections_.emplace_back();
    c.wire = std::make_unique<Wire>(fd, ssl, shared.stop_fd);
    const std::uint64_t number = ++accepted;
    c.thread = std::thread([this, &c, ssl, number] {
      serve(*c.wire, ssl, number);
      c.done = true;
    });
  }

  void serve(Wire& wire, SSL* ssl, std::uint64_t number) {
    // OpenSSL writes to sockets without MSG_NOSIGNAL.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    ::prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds: a latency of 1 ms shall be 1 ms
    if (ssl != nullptr && SSL_accept(ssl) != 1) {
      wire.reset();
      return;
    }
    Session(shared, wire, number).run();
  }

  // Joins the threads of connections that have ended.
  void reap() {
    std::list<Connection> ended;
    const std::lock_guard lock(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto next = std::next(it);
      if (it->done) ended.splice(ended.end(), connections_, it);
      it = next;
    }
    for (Connection& c : ended) c.thread.join();
  }

  SslContext ssl_;
  int listen_fd_ = -1;
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
  mutable std::mutex mutex_;
  std::list<Connection> connections_;
};

FakeS3::FakeS3(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FakeS3::~FakeS3() = default;

Result<std::unique_ptr<FakeS3>> FakeS3::start(FakeS3Options options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto ok = impl->start(); !ok) return std::unexpected(ok.error());
  return std::unique_ptr<FakeS3>(new FakeS3(std::move(impl)));
}

std::uint16_t FakeS3::port() const { return impl_->port; }
std::string FakeS3::endpoint() const {
  const auto& o = impl_->shared.options;
  return fmt::format("{}://{}:{}{}", o.tls ? "https" : "http", o.address, impl_->port, o.base_path);
}
const FakeS3Options& FakeS3::options() const { return impl_->shared.options; }
FaultPlan& FakeS3::faults() { return impl_->shared.faults; }
ObjectTable& FakeS3::objects() { return impl_->shared.objects; }

void FakeS3::set_credentials(std::vector<s3::Credentials> credentials) {
  auto next = std::make_shared<const CredentialList>(std::move(credentials));
  const std::lock_guard lock(impl_->shared.mutex);
  impl_->shared.credentials = std::move(next);
}

std::vector<RequestRecord> FakeS3::requests() const {
  const std::lock_guard lock(impl_->shared.mutex);
  return impl_->shared.records;
}
void FakeS3::clear_requests() {
  const std::lock_guard lock(impl_->shared.mutex);
  impl_->shared.records.clear();
}
std::uint64_t FakeS3::requests_total() const { return impl_->shared.requests_total; }
std::uint64_t FakeS3::connections_accepted() const { return impl_->accepted; }
std::size_t FakeS3::connections_open() const { return impl_->open(); }
void FakeS3::drop_connections() { impl_->drop_connections(); }
void FakeS3::stop() { impl_->stop(); }

}  // namespace objectcache::fake_s3
