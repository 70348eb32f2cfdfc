#include "digest/md5.h"

#include <openssl/evp.h>

#include <cstdlib>

namespace objectcache::digest {

std::array<std::byte, 16> md5(std::span<const std::byte> data) noexcept {
  std::array<std::byte, 16> out;
  unsigned size = 0;
  // A NULL pointer is not a valid empty input everywhere.
  static constexpr unsigned char kNothing = 0;
  const void* from = data.empty() ? static_cast<const void*>(&kNothing) : data.data();
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  // Fails only where OpenSSL runs without MD5 (a FIPS provider alone) or without memory.
  if (EVP_Digest(from, data.size(), to, &size, EVP_md5(), nullptr) != 1 || size != out.size()) {
    std::abort();
  }
  return out;
}

}  // namespace objectcache::digest
