#include "http/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace objectcache::http {

// ---------------------------------------------------------------- one connection

long ScriptedServer::Peer::receive(char* into, std::size_t size) {
  if (tls_ != nullptr) return SSL_read(tls_, into, static_cast<int>(size));
  return ::recv(fd_, into, size, 0);
}

std::string ScriptedServer::Peer::read_request(std::string* body) {
  std::size_t end = std::string::npos;
  char buffer[65536];
  const auto more = [&] {
    const long n = receive(buffer, sizeof buffer);
    if (n > 0) pending_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  };
  while ((end = pending_.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return {};
  }
  std::string head = pending_.substr(0, end + 4);
  pending_.erase(0, end + 4);
  std::size_t length = 0;
  if (const auto at = head.find("Content-Length: "); at != std::string::npos) {
    length = std::strtoul(head.c_str() + at + 16, nullptr, 10);
  }
  if (body == nullptr) return head;
  while (pending_.size() < length) {
    if (!more()) return {};
  }
  *body = pending_.substr(0, length);
  pending_.erase(0, length);
  return head;
}

bool ScriptedServer::Peer::wait_for_close() {
  bool silent = true;
  char buffer[4096];
  while (receive(buffer, sizeof buffer) > 0) silent = false;
  return silent;
}

bool ScriptedServer::Peer::write(std::string_view text) {
  while (!text.empty()) {
    const long n = tls_ != nullptr ? SSL_write(tls_, text.data(), static_cast<int>(text.size()))
                                   : ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void ScriptedServer::Peer::write_slowly(std::string_view text) {
  for (const char c : text) {
    if (!write({&c, 1})) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void ScriptedServer::Peer::reset() {
  const linger hard{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close();
}

void ScriptedServer::Peer::close() {
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

// ---------------------------------------------------------------- the server

ScriptedServer::ScriptedServer(Script script, Options options) : script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(options.port);
  ::inet_pton(AF_INET, options.address.c_str(), &at.sin_addr);
  socklen_t size = sizeof at;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::listen(listener_, 64) != 0) {
    throw std::runtime_error("cannot listen");
  }
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
  port_ = ntohs(at.sin_port);
  if (!options.certificate_file.empty()) {
    tls_ = SSL_CTX_new(TLS_server_method());
    const char* const file = options.certificate_file.c_str();
    if (SSL_CTX_use_certificate_chain_file(tls_, file) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls_, file, SSL_FILETYPE_PEM) != 1) {
      throw std::runtime_error("cannot use the certificate");
    }
  }
  acceptor_ = std::jthread([this] { accept_loop(); });
}

ScriptedServer::~ScriptedServer() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  for (Peer& peer : peers_) {
    const std::lock_guard lock(peer.mutex_);
    if (peer.fd_ >= 0) ::shutdown(peer.fd_, SHUT_RDWR);
  }
  threads_.clear();
  SSL_CTX_free(tls_);
}

void ScriptedServer::accept_loop() {
  while (!stopping_) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Peer& peer = peers_.emplace_back();
    peer.fd_ = fd;
    peer.number = connections_++;
    threads_.emplace_back([this, &peer] { serve(peer); });
  }
}

void ScriptedServer::serve(Peer& peer) {
  // Only here: the client must not need it.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  if (tls_ != nullptr) {
    peer.tls_ = SSL_new(tls_);
    SSL_set_fd(peer.tls_, peer.fd_);
    if (SSL_accept(peer.tls_) == 1) script_(peer);
    SSL_free(peer.tls_);
  } else {
    script_(peer);
  }
  peer.close();
}

// ---------------------------------------------------------------- certificates

namespace {

EVP_PKEY* make_key() { return EVP_EC_gen("P-256"); }

X509* make_certificate(const std::string& common_name, EVP_PKEY* key, X509* issuer,
                       EVP_PKEY* issuer_key, const std::string& extension, int nid, bool expired) {
  X509* const made = X509_new();
  X509_set_version(made, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made), issuer == nullptr ? 1 : 2);
  X509_gmtime_adj(X509_getm_notBefore(made), -7200);
  X509_gmtime_adj(X509_getm_notAfter(made), expired ? -3600 : 86400);
  X509_set_pubkey(made, key);
  X509_NAME* const name = X509_get_subject_name(made);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(made, issuer != nullptr ? X509_get_subject_name(issuer) : name);
  X509_EXTENSION* const ext = X509V3_EXT_conf_nid(nullptr, nullptr, nid, extension.c_str());
  X509_add_ext(made, ext, -1);
  X509_EXTENSION_free(ext);
  X509_sign(made, issuer_key, EVP_sha256());
  return made;
}

}  // namespace

TestCertificates make_test_certificates(const std::string& folder, const std::string& name,
                                        bool expired) {
  TestCertificates out{folder + "/ca.pem", folder + "/server.pem"};
  EVP_PKEY* const ca_key = make_key();
  EVP_PKEY* const key = make_key();
  X509* const ca = make_certificate("ObjectCache test authority", ca_key, nullptr, ca_key,
                                    "critical,CA:TRUE", NID_basic_constraints, false);
  const bool numeric = std::isdigit(static_cast<unsigned char>(name.front())) != 0;
  X509* const server =
      make_certificate("test server", key, ca, ca_key, (numeric ? "IP:" : "DNS:") + name,
                       NID_subject_alt_name, expired);
  if (std::FILE* const file = std::fopen(out.ca_file.c_str(), "w")) {
    PEM_write_X509(file, ca);
    std::fclose(file);
  }
  if (std::FILE* const file = std::fopen(out.server_file.c_str(), "w")) {
    PEM_write_X509(file, server);
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }
  X509_free(server);
  X509_free(ca);
  EVP_PKEY_free(key);
  EVP_PKEY_free(ca_key);
  return out;
}

}  // namespace objectcache::http
