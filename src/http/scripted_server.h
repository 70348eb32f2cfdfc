#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

struct ssl_st;
struct ssl_ctx_st;

namespace objectcache::http {

/// A server for tests that does exactly what its script says, right or wrong: one blocking thread
/// a connection, on a loopback address. Not an HTTP server: the script writes the bytes.
class ScriptedServer {
 public:
  class Peer {
   public:
    /// The next request up to its empty line, and its body by Content-Length into `body`.
    /// Empty: the client closed.
    std::string read_request(std::string* body = nullptr);
    /// Until the client closes; true if nothing came before that.
    bool wait_for_close();
    bool write(std::string_view text);
    /// One byte a packet.
    void write_slowly(std::string_view text);
    /// So that the client sees a reset, not an end.
    void reset();
    void close();
    /// Number of the connection, from 0.
    int number = 0;

   private:
    friend class ScriptedServer;
    long receive(char* into, std::size_t size);
    int fd_ = -1;
    ssl_st* tls_ = nullptr;
    std::string pending_;
    std::mutex mutex_;  ///< Guards fd_ against the end of the server.
  };
  using Script = std::function<void(Peer&)>;

  struct Options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;        ///< 0: any.
    std::string certificate_file;  ///< PEM with key; set: TLS.
  };
  explicit ScriptedServer(Script script) : ScriptedServer(std::move(script), Options{}) {}
  ScriptedServer(Script script, Options options);
  /// Closes everything and waits for the scripts.
  ~ScriptedServer();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int connections() const { return connections_.load(); }

 private:
  void accept_loop();
  void serve(Peer& peer);

  Script script_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  ssl_ctx_st* tls_ = nullptr;
  std::atomic<int> connections_ = 0;
  std::atomic<bool> stopping_ = false;
  std::list<Peer> peers_;
  std::list<std::jthread> threads_;
  std::jthread acceptor_;
};

/// A certificate authority and a server certificate of it, made on the spot.
struct TestCertificates {
  std::string ca_file;
  std::string server_file;  ///< Certificate and key.
};
/// `name`: a DNS name or an address. Files go into `folder`.
TestCertificates make_test_certificates(const std::string& folder, const std::string& name,
                                        bool expired = false);

}  // namespace objectcache::http
