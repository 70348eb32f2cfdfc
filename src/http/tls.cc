#include "http/tls.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <utility>

namespace objectcache::http {

namespace {

template <auto Free>
struct FreeBy {
  template <class T>
  void operator()(T* value) const {
    Free(value);
  }
};
using ContextPtr = std::unique_ptr<SSL_CTX, FreeBy<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, FreeBy<SSL_free>>;
using SessionPtr = std::unique_ptr<SSL_SESSION, FreeBy<SSL_SESSION_free>>;
using BioMethodPtr = std::unique_ptr<BIO_METHOD, FreeBy<BIO_meth_free>>;

// One system call brings two records of 16 KiB; more was measured to gain nothing.
constexpr std::size_t kReadAheadBytes = 40 * 1024;

std::string openssl_problem(std::string_view otherwise) {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return std::string(otherwise);
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : fmt::format("OpenSSL error {:#x}", code);
}

// OpenSSL's own socket BIO writes with write(2), which raises SIGPIPE; a library must not.
int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::send(socket_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::recv(socket_of(bio), data, static_cast<std::size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}

long bio_ctrl(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return 0;
}

bool is_address(const std::string& name) {
  unsigned char out[16];
  return ::inet_pton(AF_INET, name.c_str(), out) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), out) == 1;
}

}  // namespace

// ---------------------------------------------------------------- context

struct TlsContext::Impl {
  BioMethodPtr bio_method;
  ContextPtr context;
  SessionPtr session;  ///< The newest one; a TLS 1.3 ticket serves for one handshake.
  std::string ca_file;
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::create_client(Options options) {
  auto impl = std::make_unique<Impl>();
  impl->ca_file = options.ca_file;
  impl->context.reset(SSL_CTX_new(TLS_client_method()));
  impl->bio_method.reset(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket"));
  if (!impl->context || !impl->bio_method) {
    return fail(ErrorCode::kInternal, openssl_problem("out of memory"), "set up TLS");
  }
  BIO_meth_set_write(impl->bio_method.get(), bio_write);
  BIO_meth_set_read(impl->bio_method.get(), bio_read);
  BIO_meth_set_ctrl(impl->bio_method.get(), bio_ctrl);

  SSL_CTX* const context = impl->context.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Many servers end without TLS's closing message. The framing of HTTP says how many bytes were
  // due, so a forged end is noticed there; for OpenSSL it would spoil the session for reuse.
  SSL_CTX_set_options(
      context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadAheadBytes);
  SSL_CTX_set_verify(context, options.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (!options.insecure) {
    ERR_clear_error();
    const int loaded = options.ca_file.empty()
                           ? SSL_CTX_set_default_verify_paths(context)
                           : SSL_CTX_load_verify_file(context, options.ca_file.c_str());
    if (loaded != 1) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("cannot load certificates of authorities: {}",
                              openssl_problem("no certificate in it")),
                  "set up TLS", options.ca_file);
    }
  }
  std::shared_ptr<TlsContext> made(new TlsContext(std::move(impl)));
  SSL_CTX_set_app_data(context, made.get());
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(context, [](SSL* ssl, SSL_SESSION* session) {
    auto* self = static_cast<TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
    self->impl_->session.reset(session);
    return 1;  // Keeps the reference that came with the call.
  });
  return made;
}

// ---------------------------------------------------------------- stream

struct TlsStream::Impl {
  std::shared_ptr<TlsContext> context;
  SslPtr ssl;
  std::string name;

  IoResult result_of(int returned, std::size_t bytes) {
    switch (SSL_get_error(ssl.get(), returned)) {
      case SSL_ERROR_NONE:
        return {.status = IoResult::Status::kDone, .bytes = bytes};
      case SSL_ERROR_WANT_READ:
        return {.status = IoResult::Status::kWantRead};
      case SSL_ERROR_WANT_WRITE:
        return {.status = IoResult::Status::kWantWrite};
      case SSL_ERROR_ZERO_RETURN:
        return {.status = IoResult::Status::kEnd};
      case SSL_ERROR_SYSCALL:
        if (errno == 0 || ERR_peek_error() != 0) break;
        return {.status = IoResult::Status::kError,
                .problem = std::generic_category().message(errno)};
      default:
        break;
    }
    return {.status = IoResult::Status::kError,
            .problem = "TLS: " + openssl_problem("connection closed")};
  }

  std::string handshake_problem(const std::string& problem) const {
    const long verdict = SSL_get_verify_result(ssl.get());
    if (verdict == X509_V_OK) return problem;
    const char* why = X509_verify_cert_error_string(verdict);
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      return fmt::format(
          "the certificate that host {} shows is for another name ({}); reach it by the name in "
          "its certificate",
          name, why);
    }
    return fmt::format(
        "certificate of host {} is not trusted: {}; pass ca=FILE with the certificate of the "
        "authority that signed it{}",
        name, why, context->impl_->ca_file.empty() ? "" : " (now " + context->impl_->ca_file + ")");
  }
};

TlsStream::TlsStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsStream::~TlsStream() {
  // Without these marks OpenSSL takes the end for a broken one and spoils the session for reuse.
  SSL_set_shutdown(impl_->ssl.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

Result<std::unique_ptr<TlsStream>> TlsStream::create_client(std::shared_ptr<TlsContext> context,
                                                            int fd, std::string name) {
  ERR_clear_error();
  auto impl = std::make_unique<Impl>();
  impl->ssl.reset(SSL_new(context->impl_->context.get()));
  BIO* const bio = BIO_new(context->impl_->bio_method.get());
  if (!impl->ssl || bio == nullptr) {
    BIO_free(bio);
    return fail(ErrorCode::kInternal, openssl_problem("out of memory"), "set up TLS", name);
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL* const ssl = impl->ssl.get();
  SSL_set_bio(ssl, bio, bio);  // Takes the BIO.
  const bool named = is_address(name)
                         ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1
                         : SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                    name.data()) == 1 &&
                               SSL_set1_host(ssl, name.c_str()) == 1;
  if (!named) {
    return fail(ErrorCode::kInvalidArgument, "not a usable host name for TLS", "set up TLS", name);
  }
  if (context->impl_->session) SSL_set_session(ssl, context->impl_->session.get());
  SSL_set_connect_state(ssl);
  impl->context = std::move(context);
  impl->name = std::move(name);
  return std::unique_ptr<TlsStream>(new TlsStream(std::move(impl)));
}

IoResult TlsStream::handshake() {
  ERR_clear_error();
  errno = 0;
  const int returned = SSL_do_handshake(impl_->ssl.get());
  IoResult result = impl_->result_of(returned, 0);
  if (result.status == IoResult::Status::kEnd) {
    result = {.status = IoResult::Status::kError,
              .problem = "the server closed the connection in the TLS handshake"};
  }
  if (result.status == IoResult::Status::kError) {
    impl_->context->impl_->session.reset();
    result.problem = impl_->handshake_problem(result.problem);
  }
  return result;
}

bool TlsStream::certificate_refused() const {
  return SSL_get_verify_result(impl_->ssl.get()) != X509_V_OK;
}

bool TlsStream::session_reused() const { return SSL_session_reused(impl_->ssl.get()) == 1; }

IoResult TlsStream::read(Segment into) {
  ERR_clear_error();
  errno = 0;
  std::size_t bytes = 0;
  const int returned = SSL_read_ex(impl_->ssl.get(), into.data(), into.size(), &bytes);
  return impl_->result_of(returned, bytes);
}

IoResult TlsStream::write(ConstSegment from) {
  ERR_clear_error();
  errno = 0;
  std::size_t bytes = 0;
  const int returned = SSL_write_ex(impl_->ssl.get(), from.data(), from.size(), &bytes);
  return impl_->result_of(returned, bytes);
}

IoResult TlsStream::peek() {
  ERR_clear_error();
  errno = 0;
  char byte = 0;
  std::size_t bytes = 0;
  const int returned = SSL_peek_ex(impl_->ssl.get(), &byte, 1, &bytes);
  return impl_->result_of(returned, bytes);
}

std::size_t TlsStream::pending() const {
  const int bytes = SSL_pending(impl_->ssl.get());
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

void TlsStream::shutdown() {
  ERR_clear_error();
  if (SSL_is_init_finished(impl_->ssl.get()) == 1) SSL_shutdown(impl_->ssl.get());
  ERR_clear_error();
}

}  // namespace objectcache::http
