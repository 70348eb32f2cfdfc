#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "fake_s3/fake_s3.h"

namespace objectcache::fake_s3 {
namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fake_s3_XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

// What a TLS client that trusts `ca` gets for a request; empty: it refused the server.
std::string ask(const FakeS3& server, const std::filesystem::path& ca, const char* host) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  SSL_CTX_load_verify_file(context.get(), ca.c_str());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const std::unique_ptr<BIO, void (*)(BIO*)> bio(BIO_new_ssl_connect(context.get()), BIO_free_all);
  SSL* ssl = nullptr;
  BIO_get_ssl(bio.get(), &ssl);
  BIO_set_conn_hostname(bio.get(), ("127.0.0.1:" + std::to_string(server.port())).c_str());
  if (std::string_view(host) == "127.0.0.1") {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
  } else {
    SSL_set1_host(ssl, host);
  }
  if (BIO_do_connect(bio.get()) != 1) return {};
  const std::string text = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  BIO_write(bio.get(), text.data(), static_cast<int>(text.size()));
  std::string out(4096, '\0');
  const int count = BIO_read(bio.get(), out.data(), static_cast<int>(out.size()));
  out.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return out;
}

TEST(FakeS3Tls, IsTrustedByItsAuthorityOnly) {
  std::signal(SIGPIPE, SIG_IGN);
  const Folder folder;
  const auto files = make_tls_files(folder.path / "a");
  const auto others = make_tls_files(folder.path / "b");
  ASSERT_TRUE(files.has_value() && others.has_value());
  FakeS3Options options;
  options.tls = *files;
  const auto server = FakeS3::start(options);
  ASSERT_TRUE(server.has_value());
  EXPECT_TRUE((*server)->endpoint().starts_with("https://"));
  EXPECT_TRUE(ask(**server, files->ca_certificate, "127.0.0.1").starts_with("HTTP/1.1 403"));
  EXPECT_TRUE(ask(**server, files->ca_certificate, "localhost").starts_with("HTTP/1.1 403"));
  EXPECT_EQ(ask(**server, files->ca_certificate, "elsewhere"), "");
  EXPECT_EQ(ask(**server, others->ca_certificate, "127.0.0.1"), "");
}

TEST(FakeS3Tls, MissingFilesAreAnError) {
  FakeS3Options options;
  options.tls =
      TlsFiles{.ca_certificate = "/none", .server_certificate = "/none", .server_key = "/none"};
  EXPECT_FALSE(FakeS3::start(options).has_value());
}

}  // namespace
}  // namespace objectcache::fake_s3
