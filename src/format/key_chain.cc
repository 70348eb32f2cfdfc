#include "objectcache/key_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "digest/sha256.h"

namespace objectcache {
namespace {

static_assert(std::endian::native == std::endian::little,
              "token ids are hashed as they lie in memory");

constexpr std::string_view kRootTag = "objectcache/1";
constexpr std::string_view kEngineTag = "objectcache/1/engine";
constexpr std::size_t kEngineHashBytesMin = 32;
constexpr std::size_t kEngineHashBytesMax = 64;

/// Four bytes, least significant first.
std::array<std::byte, 4> u32_bytes(std::size_t value) {
  return std::bit_cast<std::array<std::byte, 4>>(static_cast<std::uint32_t>(value));
}

std::unexpected<Error> refuse(std::string cause) {
  return fail(ErrorCode::kInvalidArgument, std::move(cause), "compute keys");
}

Result<void> require_source(const NamespaceSpec& spec, KeySource wanted) {
  if (auto ok = validate(spec); !ok) return ok;
  if (spec.key_source() == wanted) return {};
  return refuse(fmt::format(
      "the namespace's hash_algorithm is {}: its keys come from {}", spec.hash_algorithm,
      wanted == KeySource::kOwnChain ? "the engine's block hashes" : "tokens"));
}

Result<void> check_extras(std::span<const UnitExtra> extras) {
  for (std::size_t i = 0; i < extras.size(); ++i) {
    if (extras[i].bytes.size() > kExtraBytesMax) {
      return refuse(fmt::format("the extra input of unit {} has more than {} bytes; pass a digest",
                                extras[i].unit, kExtraBytesMax));
    }
    if (i > 0 && extras[i].unit <= extras[i - 1].unit) {
      return refuse("extra inputs must ascend by unit, one a unit");
    }
  }
  return {};
}

UnitKey engine_key(const NamespaceDigest& name, const digest::Sha256Bytes& salt_digest,
                   EngineHash hash) {
  const auto length = u32_bytes(hash.size());
  return {digest::sha256({digest::bytes_of(kEngineTag), name.bytes, salt_digest, length, hash})};
}

Result<void> check_engine_hash(EngineHash hash) {
  if (hash.size() >= kEngineHashBytesMin && hash.size() <= kEngineHashBytesMax) return {};
  return refuse(
      fmt::format("an engine hash has {} to {} bytes, this one has {}: shorter ones are "
                  "not collision-proof",
                  kEngineHashBytesMin, kEngineHashBytesMax, hash.size()));
}

}  // namespace

KeyChain::KeyChain(const NamespaceDigest& name, std::string_view cache_salt) noexcept
    : head_{digest::hmac_sha256(digest::sha256(digest::bytes_of(cache_salt)),
                                {digest::bytes_of(kRootTag), name.bytes})} {}

UnitKey KeyChain::append(std::span<const TokenId> tokens, ConstSegment extra) noexcept {
  const auto token_count = u32_bytes(tokens.size());
  const auto extra_bytes = u32_bytes(extra.size());
  head_.bytes =
      digest::sha256({head_.bytes, token_count, std::as_bytes(tokens), extra_bytes, extra});
  return head_;
}

Result<std::vector<UnitKey>> unit_keys(const NamespaceSpec& spec, std::string_view cache_salt,
                                       std::span<const TokenId> tokens,
                                       std::span<const UnitExtra> extras) {
  if (auto ok = require_source(spec, KeySource::kOwnChain); !ok) {
    return std::unexpected(std::move(ok).error());
  }
  if (tokens.size() > kTokensPerPromptMax) return refuse("the prompt has too many tokens");
  if (auto ok = check_extras(extras); !ok) return std::unexpected(std::move(ok).error());
  const auto name = namespace_digest(spec);
  if (!name) return std::unexpected(name.error());

  const std::size_t unit_tokens = spec.unit_tokens;
  const std::size_t count = tokens.size() / unit_tokens;
  std::vector<UnitKey> keys;
  keys.reserve(count);
  KeyChain chain(*name, cache_salt);
  std::size_t next_extra = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ConstSegment extra;
    if (next_extra < extras.size() && extras[next_extra].unit == i) {
      extra = extras[next_extra++].bytes;
    }
    keys.push_back(chain.append(tokens.subspan(i * unit_tokens, unit_tokens), extra));
  }
  return keys;
}

Result<UnitKey> engine_unit_key(const NamespaceDigest& name, std::string_view cache_salt,
                                EngineHash hash) {
  if (auto ok = check_engine_hash(hash); !ok) return std::unexpected(std::move(ok).error());
  return engine_key(name, digest::sha256(digest::bytes_of(cache_salt)), hash);
}

Result<std::vector<UnitKey>> engine_unit_keys(const NamespaceSpec& spec,
                                              std::string_view cache_salt,
                                              std::span<const EngineHash> block_hashes) {
  if (auto ok = require_source(spec, KeySource::kEngineHash); !ok) {
    return std::unexpected(std::move(ok).error());
  }
  const auto name = namespace_digest(spec);
  if (!name) return std::unexpected(name.error());
  const auto salt_digest = digest::sha256(digest::bytes_of(cache_salt));
  const std::size_t blocks_per_unit = spec.unit_tokens / spec.engine_block_tokens;
  std::vector<UnitKey> keys;
  keys.reserve(block_hashes.size() / blocks_per_unit);
  for (std::size_t last = blocks_per_unit - 1; last < block_hashes.size();
       last += blocks_per_unit) {
    if (auto ok = check_engine_hash(block_hashes[last]); !ok) {
      return std::unexpected(std::move(ok).error());
    }
    keys.push_back(engine_key(*name, salt_digest, block_hashes[last]));
  }
  return keys;
}

std::vector<ChunkKey> chunk_keys(std::span<const UnitKey> units, std::uint32_t units_per_chunk) {
  std::vector<ChunkKey> keys;
  if (units_per_chunk == 0) return keys;
  keys.reserve(units.size() / units_per_chunk);
  for (std::size_t last = units_per_chunk - 1; last < units.size(); last += units_per_chunk) {
    keys.push_back(chunk_key_of(units[last]));
  }
  return keys;
}

}  // namespace objectcache
