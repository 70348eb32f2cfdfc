#include "fake_s3/tls_files.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>

namespace objectcache::fake_s3 {
namespace {

struct Free {
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
  void operator()(std::FILE* p) const { std::fclose(p); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Certificate = std::unique_ptr<X509, Free>;
using File = std::unique_ptr<std::FILE, Free>;

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// An unsigned certificate with everything but its extensions. `issuer` null: its own.
Certificate new_certificate(EVP_PKEY* key, long serial, const std::string& name, X509* issuer) {
  Certificate certificate(X509_new());
  if (!certificate) return nullptr;
  X509* c = certificate.get();
  X509_set_version(c, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(c), serial);
  X509_gmtime_adj(X509_getm_notBefore(c), -3600);
  X509_gmtime_adj(X509_getm_notAfter(c), 10L * 24 * 3600);
  X509_set_pubkey(c, key);
  X509_NAME* subject = X509_get_subject_name(c);
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509_set_issuer_name(c, issuer == nullptr ? subject : X509_get_subject_name(issuer));
  return certificate;
}

bool write_certificate(const std::filesystem::path& path, X509* certificate) {
  const File file(std::fopen(path.c_str(), "w"));
  return file && PEM_write_X509(file.get(), certificate) == 1;
}

bool write_key(const std::filesystem::path& path, EVP_PKEY* key) {
  const File file(std::fopen(path.c_str(), "w"));
  return file && PEM_write_PrivateKey(file.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1;
}

}  // namespace

Result<TlsFiles> make_tls_files(const std::filesystem::path& folder, const TlsNames& names) {
  const auto failed = [&](std::string_view what) {
    return fail(ErrorCode::kInternal, fmt::format("cannot {}", what), "make test certificates",
                folder.string());
  };
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return failed("create the folder: " + error.message());

  const Key ca_key(EVP_EC_gen("P-256"));
  const Key key(EVP_EC_gen("P-256"));
  if (!ca_key || !key) return failed("make keys");
  const Certificate ca = new_certificate(ca_key.get(), 1, "ObjectCache test authority", nullptr);
  if (!ca || !add_extension(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(ca.get(), ca.get(), NID_subject_key_identifier, "hash") ||
      X509_sign(ca.get(), ca_key.get(), EVP_sha256()) == 0) {
    return failed("make the authority");
  }
  std::string alternatives;
  for (const std::string& name : names.dns) alternatives += fmt::format("DNS:{},", name);
  for (const std::string& ip : names.ip) alternatives += fmt::format("IP:{},", ip);
  if (!alternatives.empty()) alternatives.pop_back();
  const Certificate server = new_certificate(key.get(), 2, "fake-s3", ca.get());
  if (!server || !add_extension(server.get(), ca.get(), NID_basic_constraints, "CA:FALSE") ||
      !add_extension(server.get(), ca.get(), NID_subject_alt_name, alternatives) ||
      !add_extension(server.get(), ca.get(), NID_ext_key_usage, "serverAuth") ||
      X509_sign(server.get(), ca_key.get(), EVP_sha256()) == 0) {
    return failed("make the server's certificate");
  }
  TlsFiles files{.ca_certificate = folder / "ca.pem",
                 .server_certificate = folder / "server.pem",
                 .server_key = folder / "server.key"};
  if (!write_certificate(files.ca_certificate, ca.get()) ||
      !write_certificate(files.server_certificate, server.get()) ||
      !write_key(files.server_key, key.get())) {
    return failed("write the files");
  }
  return files;
}

}  // namespace objectcache::fake_s3
