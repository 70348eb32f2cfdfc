#include "digest/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>

namespace objectcache::digest {
namespace {

// OpenSSL fails here only if memory is exhausted or its own installation is broken; no caller can
// act on either, and a wrong digest must never be returned.
void require(bool ok) noexcept {
  if (!ok) std::abort();
}

// Fetching an algorithm takes locks and costs more than hashing a short input: once a process.
const EVP_MD* sha256_algorithm() noexcept {
  static const EVP_MD* const algorithm = [] {
    const EVP_MD* fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    require(fetched != nullptr);
    return fetched;
  }();
  return algorithm;
}

}  // namespace

/// An OpenSSL context that is always ready for the first byte of the next input.
class DigestContext {
 public:
  DigestContext() noexcept {
    require(ctx_ != nullptr);
    start();
  }
  void update(ConstSegment data) noexcept {
    if (!data.empty()) require(EVP_DigestUpdate(ctx_.get(), data.data(), data.size()) == 1);
  }
  Sha256Bytes finish() noexcept {
    Sha256Bytes out;
    unsigned size = 0;
    auto* to = reinterpret_cast<unsigned char*>(out.data());
    require(EVP_DigestFinal_ex(ctx_.get(), to, &size) == 1 && size == out.size());
    start();
    return out;
  }
  /// For the one-shot functions: making a context costs as much as hashing a short input.
  static DigestContext& of_thread() noexcept {
    thread_local DigestContext context;
    return context;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* ctx) const noexcept { EVP_MD_CTX_free(ctx); }
  };
  void start() noexcept {
    require(EVP_DigestInit_ex2(ctx_.get(), sha256_algorithm(), nullptr) == 1);
  }

  std::unique_ptr<EVP_MD_CTX, Free> ctx_{EVP_MD_CTX_new()};
};

Sha256Bytes sha256(ConstSegment data) noexcept { return sha256(std::span(&data, 1)); }

Sha256Bytes sha256(std::span<const ConstSegment> pieces) noexcept {
  DigestContext& context = DigestContext::of_thread();
  for (const ConstSegment piece : pieces) context.update(piece);
  return context.finish();
}

Sha256Bytes hmac_sha256(ConstSegment key, ConstSegment data) noexcept {
  return hmac_sha256(key, std::span(&data, 1));
}

Sha256Bytes hmac_sha256(ConstSegment key, std::span<const ConstSegment> pieces) noexcept {
  constexpr std::size_t kBlockBytes = 64;
  std::array<std::byte, kBlockBytes> pad{};
  if (key.size() > kBlockBytes) {
    const Sha256Bytes short_key = sha256(key);
    std::ranges::copy(short_key, pad.begin());
  } else {
    std::ranges::copy(key, pad.begin());
  }
  DigestContext& context = DigestContext::of_thread();
  for (std::byte& b : pad) b ^= std::byte{0x36};
  context.update(pad);
  for (const ConstSegment piece : pieces) context.update(piece);
  const Sha256Bytes inner = context.finish();
  for (std::byte& b : pad) b ^= std::byte{0x36} ^ std::byte{0x5c};
  context.update(pad);
  context.update(inner);
  OPENSSL_cleanse(pad.data(), pad.size());
  return context.finish();
}

bool equal_in_constant_time(ConstSegment a, ConstSegment b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Sha256::Sha256() noexcept : context_(std::make_unique<DigestContext>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(ConstSegment data) noexcept { context_->update(data); }
Sha256Bytes Sha256::finish() noexcept { return context_->finish(); }

}  // namespace objectcache::digest
