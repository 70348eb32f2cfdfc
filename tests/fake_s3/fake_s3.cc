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

#include "digest/hex.h"
#include "digest/sha256.h"
#include "fake_s3/delivery.h"
#include "fake_s3/verbs.h"
#include "fake_s3/wire.h"
#include "s3/http_date.h"
#include "s3/sigv4.h"

namespace objectcache::fake_s3 {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;
using CredentialList = std::vector<s3::Credentials>;

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

const Fault* find_fault(const std::vector<Fault>& faults, FaultKind kind) {
  const auto it = std::ranges::find(faults, kind, &Fault::kind);
  return it == faults.end() ? nullptr : &*it;
}

int status_of(s3::CheckFailure failure) {
  using F = s3::CheckFailure;
  const bool is_form = failure == F::kMalformed || failure == F::kWrongScope ||
                       failure == F::kExpiredToken || failure == F::kBadToken;
  return is_form ? 400 : 403;
}

Answer check_answer(const s3::CheckProblem& problem, const std::string& region,
                    system_clock::time_point now) {
  s3::ErrorDocument document;
  document.code = s3::s3_code_of(problem.failure);
  document.message = problem.message;
  document.request_id = "in-header";
  if (problem.failure == s3::CheckFailure::kWrongScope) document.region = region;
  if (problem.failure == s3::CheckFailure::kClockSkew) {
    document.server_time = s3::format_iso8601(now);
  }
  Answer out;
  out.status = status_of(problem.failure);
  out.set_header("Content-Type", "application/xml");
  out.text = s3::write_error_document(document);
  return out;
}

// The code that S3 would give, where a test names a status only.
std::string_view usual_code(int status) {
  switch (status) {
    case 403:
      return "AccessDenied";
    case 429:
      return "TooManyRequests";
    case 500:
      return "InternalError";
    case 503:
      return "SlowDown";
    case 507:
      return "InsufficientStorage";
    default:
      return "ScriptedFault";
  }
}

Answer scripted_answer(const Fault& fault, system_clock::time_point now) {
  s3::ErrorDocument document;
  document.code = fault.s3_code.empty() ? usual_code(fault.status) : fault.s3_code;
  document.message = "a scripted fault";
  document.request_id = "in-header";
  document.region = fault.region;
  Answer out;
  out.status = fault.status;
  if (fault.kind == FaultKind::kRedirect) {
    if (out.status != 307) out.status = 301;
    if (fault.s3_code.empty()) {
      document.code = out.status == 307 ? "TemporaryRedirect" : "PermanentRedirect";
    }
    out.set_header("Location", fault.text);
  }
  if (!fault.region.empty()) out.set_header("x-amz-bucket-region", fault.region);
  if (document.code == "RequestTimeTooSkewed") document.server_time = s3::format_iso8601(now);
  if (fault.retry_after_s >= 0) {
    out.set_header("Retry-After", fmt::to_string(fault.retry_after_s));
  }
  out.set_header("Content-Type", "application/xml");
  out.text = s3::write_error_document(document);
  return out;
}

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

std::optional<std::string_view> RequestRecord::header(std::string_view name) const {
  for (const auto& [n, value] : headers) {
    if (std::ranges::equal(n, name, {}, lower, lower)) return value;
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- one connection

// What the connections share.
struct Shared {
  explicit Shared(FakeS3Options o)
      : options(std::move(o)),
        rules{.region = options.region,
              .base_path = options.base_path,
              .virtual_host_suffix = options.virtual_host_suffix,
              .refuse_unknown_headers = options.refuse_unknown_headers,
              .object_bytes_max = options.object_bytes_max},
        faults(options.fault_seed),
        objects(options.etags),
        credentials(std::make_shared<const CredentialList>(options.credentials)) {}

  const FakeS3Options options;
  const VerbRules rules;
  FaultPlan faults;
  ObjectTable objects;
  SslContext ssl;
  int stop_fd = -1;
  std::atomic<std::uint64_t> requests_total{0};

  mutable std::mutex mutex;  // guards the two below; never held during I/O
  std::shared_ptr<const CredentialList> credentials;
  std::vector<RequestRecord> records;

  [[nodiscard]] system_clock::time_point now() const {
    return system_clock::now() + options.clock_offset;
  }
  [[nodiscard]] std::shared_ptr<const CredentialList> known_credentials() const {
    const std::lock_guard lock(mutex);
    return credentials;
  }
};

// Serves the requests of one connection, one after the other, on a thread of its own.
class Session {
 public:
  Session(Shared& shared, Wire& wire, std::uint64_t connection)
      : shared_(shared),
        wire_(wire),
        connection_(connection),
        reader_(wire, {.body_bytes_max = shared.options.object_bytes_max + 1}),
        checker_({.region = shared.options.region},
                 [this](std::string_view id) { return find_credentials(id); }) {}

  void run() {
    while (serve_one()) {
    }
    wire_.close();
  }

 private:
  // False: the connection is over.
  bool serve_one() {
    WireRequest request;
    auto outcome = reader_.read_head(request);
    if (outcome == RequestReader::Outcome::kEnd) return false;
    request_id_ = fmt::format("fake{:012x}", ++shared_.requests_total);
    if (outcome != RequestReader::Outcome::kRequest) return refuse_wire(outcome);

    const auto arrived = steady_clock::now();
    const auto route = route_of(request, shared_.rules);
    const std::string name =
        route ? fmt::format("{}/{}", route->bucket, route->key) : std::string();
    const auto faults = shared_.faults.take(request.method, name);
    const std::size_t record = start_record(request, arrived, faults);

    if (const Fault* fault = find_fault(faults, FaultKind::kResetInRequest)) {
      static_cast<void>(reader_.read_body(request, fault->bytes));
      wire_.reset();
      return false;
    }
    outcome = reader_.read_body(request);
    if (outcome == RequestReader::Outcome::kEnd) return false;
    if (outcome != RequestReader::Outcome::kRequest) return refuse_wire(outcome);
    note_body(record, request.body.size());

    if (shared_.options.latency.count() > 0 && !wire_.wait(shared_.options.latency)) return false;
    for (const Fault& fault : faults) {
      if (fault.kind == FaultKind::kDelay && !wire_.wait(fault.delay)) return false;
    }
    if (end_unanswered(faults)) return false;
    Answer answer = answer_to(request, route, faults);
    note_status(record, answer.status);
    return deliver(wire_, std::move(answer), faults,
                   {.request_id = request_id_,
                    .date = s3::format_http_date(shared_.now()),
                    .close_after = request.header("connection") == "close"});
  }

  Answer answer_to(WireRequest& request, const std::optional<Route>& route,
                   const std::vector<Fault>& faults) {
    for (const FaultKind kind : {FaultKind::kStatus, FaultKind::kRedirect}) {
      if (const Fault* fault = find_fault(faults, kind)) {
        Answer answer = scripted_answer(*fault, shared_.now());
        answer.head_only = request.method == "HEAD";
        return answer;
      }
    }
    Answer answer = checked_answer(request, route, faults);
    if (request.method == "HEAD") answer.head_only = true;
    return answer;
  }

  Answer checked_answer(WireRequest& request, const std::optional<Route>& route,
                        const std::vector<Fault>& faults) {
    const auto now = shared_.now();
    known_ = shared_.known_credentials();
    const auto checked = checker_.check({.method = request.method,
                                         .path = request.path,
                                         .query = request.query,
                                         .headers = request.headers,
                                         .payload_hash = {}},
                                        now);
    if (!checked) return check_answer(checked.error(), shared_.options.region, now);
    if (!checked->payload_sha256_hex.empty() &&
        checked->payload_sha256_hex != digest::hex(digest::sha256(request.body))) {
      return error_answer(400, "XAmzContentSHA256Mismatch",
                          "the body is not what x-amz-content-sha256 says");
    }
    if (!route) return error_answer(404, "NoSuchBucket", "outside the base path");
    return carry_out(request, *route, shared_.rules, shared_.objects, faults);
  }

  bool end_unanswered(const std::vector<Fault>& faults) {
    if (find_fault(faults, FaultKind::kResetUnapplied) != nullptr) {
      wire_.reset();
    } else if (find_fault(faults, FaultKind::kCloseUnanswered) != nullptr) {
      wire_.close();
    } else if (find_fault(faults, FaultKind::kStallUnanswered) != nullptr) {
      wire_.wait_for_end();
    } else if (find_fault(faults, FaultKind::kGarbage) != nullptr) {
      static_cast<void>(wire_.write("\x16\x03\x01 this is not HTTP\r\n\r\n\xff\xff\n", {}));
      wire_.close();
    } else {
      return false;
    }
    return true;
  }

  bool refuse_wire(RequestReader::Outcome outcome) {
    const bool large = outcome == RequestReader::Outcome::kTooLarge;
    return deliver(
        wire_, error_answer(400, large ? "EntityTooLarge" : "BadRequest", reader_.problem()), {},
        {.request_id = request_id_,
         .date = s3::format_http_date(shared_.now()),
         .close_after = true});
  }

  const s3::Credentials* find_credentials(std::string_view id) const {
    const auto it = std::ranges::find(*known_, id, &s3::Credentials::access_key_id);
    return it == known_->end() ? nullptr : &*it;
  }

  // ---- records. The place stays right unless clear_requests() comes between, which is harmless.

  std::size_t start_record(const WireRequest& request, steady_clock::time_point arrived,
                           const std::vector<Fault>& faults) {
    if (shared_.options.records_max == 0) return SIZE_MAX;
    RequestRecord record{.method = std::string(request.method),
                         .target = std::string(request.target()),
                         .headers = {},
                         .body_bytes = 0,
                         .connection = connection_,
                         .arrived = arrived,
                         .status = 0,
                         .faults = {}};
    for (const auto& h : request.headers) record.headers.emplace_back(h.name, h.value);
    for (const Fault& fault : faults) record.faults.push_back(fault.kind);
    const std::lock_guard lock(shared_.mutex);
    if (shared_.records.size() == shared_.options.records_max) return SIZE_MAX;
    shared_.records.push_back(std::move(record));
    return shared_.records.size() - 1;
  }
  void note_body(std::size_t record, std::size_t bytes) {
    if (record == SIZE_MAX) return;
    const std::lock_guard lock(shared_.mutex);
    if (record < shared_.records.size()) shared_.records[record].body_bytes = bytes;
  }
  void note_status(std::size_t record, int status) {
    if (record == SIZE_MAX) return;
    const std::lock_guard lock(shared_.mutex);
    if (record < shared_.records.size()) shared_.records[record].status = status;
  }

  Shared& shared_;
  Wire& wire_;
  const std::uint64_t connection_;
  RequestReader reader_;
  s3::Checker checker_;
  std::shared_ptr<const CredentialList> known_;  // keeps what check() looks up alive
  std::string request_id_;
};

// ---------------------------------------------------------------- the server

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
      shared.ssl = std::move(*context);
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

  Shared shared;
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
    if (shared.ssl) {
      ssl = SSL_new(shared.ssl.get());
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
