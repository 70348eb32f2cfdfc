#include "objectcache/namespace_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "digest/sha256.h"
#include "format/chunk_layout.h"
#include "format/namespace_fields.h"

namespace objectcache {
namespace {

using format::kNumberFields;
using format::kTextFields;

constexpr std::string_view kAction = "check namespace";

std::unexpected<Error> refuse(std::string_view field, std::string cause) {
  return fail(ErrorCode::kInvalidArgument, std::move(cause), std::string(kAction),
              std::string(field));
}

bool is_plain_text(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\'; });
}

Result<void> check_texts(const NamespaceSpec& spec) {
  for (const auto& field : kTextFields) {
    const std::string& text = spec.*field.member;
    if (text.empty()) {
      return refuse(field.name, field.may_be_none
                                    ? "must be stated; write \"none\" if it does not apply"
                                    : "must be stated");
    }
    if (text.size() > NamespaceSpec::kTextBytesMax) {
      return refuse(field.name, fmt::format("has {} bytes; at most {} are allowed", text.size(),
                                            NamespaceSpec::kTextBytesMax));
    }
    if (!is_plain_text(text)) {
      return refuse(field.name, "may hold only printable ASCII without '\"' and '\\'");
    }
    if (!field.may_be_none && text == "none") {
      return refuse(field.name, "always applies, \"none\" cannot be true");
    }
  }
  return {};
}

/// Block hashes that cannot be forged. An engine hash that is not among them could give two
/// prompts one key, and with it one user the KV of another.
constexpr std::array<std::string_view, 5> kEngineHashes = {"sha256", "sha256_cbor", "sha512",
                                                           "sha3_256", "blake3"};

Result<void> check_hash(const NamespaceSpec& spec) {
  constexpr std::string_view kEngine = "engine:";
  const std::string_view algorithm = spec.hash_algorithm;
  if (algorithm == "sha256-chain") {
    if (spec.hash_seed == "none") return {};
    return refuse("hash_seed", "our own chain has no seed: write \"none\"");
  }
  if (!algorithm.starts_with(kEngine)) {
    return refuse(
        "hash_algorithm",
        fmt::format("\"{}\" is unknown; use \"sha256-chain\" or \"engine:<hash>\"", algorithm));
  }
  if (std::ranges::find(kEngineHashes, algorithm.substr(kEngine.size())) == kEngineHashes.end()) {
    return refuse("hash_algorithm",
                  fmt::format("\"{}\" is not a known cryptographic hash: different prompts could "
                              "get equal keys; use one of engine:{}",
                              algorithm, fmt::join(kEngineHashes, ", engine:")));
  }
  if (spec.hash_seed == "random") {
    return refuse("hash_seed", "keys from a random seed never match again; fix the engine's seed");
  }
  return {};
}

Result<void> check_tokens(const NamespaceSpec& spec) {
  const auto in_limits = [](std::uint32_t n) { return n >= 1 && n <= NamespaceSpec::kTokensMax; };
  if (!in_limits(spec.engine_block_tokens)) return refuse("engine_block_tokens", "is out of range");
  if (!in_limits(spec.unit_tokens)) return refuse("unit_tokens", "is out of range");
  if (!in_limits(spec.chunk_tokens)) return refuse("chunk_tokens", "is out of range");
  if (spec.unit_tokens % spec.engine_block_tokens != 0) {
    return refuse("unit_tokens", fmt::format("{} is no multiple of the engine's block of {}",
                                             spec.unit_tokens, spec.engine_block_tokens));
  }
  if (spec.chunk_tokens % spec.unit_tokens != 0) {
    return refuse("chunk_tokens", fmt::format("{} is no multiple of the unit of {}",
                                              spec.chunk_tokens, spec.unit_tokens));
  }
  if (spec.chunk_tokens / spec.unit_tokens > NamespaceSpec::kUnitsPerChunkMax) {
    return refuse("chunk_tokens",
                  fmt::format("a chunk has at most {} units", NamespaceSpec::kUnitsPerChunkMax));
  }
  return {};
}

/// No sum or product here can overflow: 2^24 bytes a token, 2^20 tokens, 2^10 layers.
Result<void> check_sizes(const NamespaceSpec& spec) {
  if (spec.layers < 1 || spec.layers > NamespaceSpec::kLayersMax) {
    return refuse("layers", fmt::format("must be 1 to {}", NamespaceSpec::kLayersMax));
  }
  const auto& sizes = spec.bytes_per_token;
  if (sizes.size() != 1 && sizes.size() != spec.layers) {
    return refuse("bytes_per_token", fmt::format("has {} entries for {} layers; give one a layer, "
                                                 "or a single number if all are equal",
                                                 sizes.size(), spec.layers));
  }
  std::uint64_t object_bytes = format::padded_header_bytes(spec.layers, spec.units_per_chunk());
  const std::uint64_t header_bytes = object_bytes;
  for (std::uint32_t layer = 0; layer < spec.layers; ++layer) {
    const std::uint64_t bytes = spec.layer_bytes_per_token(layer);
    if (bytes < 1 || bytes > NamespaceSpec::kBytesPerTokenMax) {
      return refuse("bytes_per_token", fmt::format("layer {}: must be 1 to {}", layer,
                                                   NamespaceSpec::kBytesPerTokenMax));
    }
    if (bytes * spec.unit_tokens > std::numeric_limits<std::uint32_t>::max()) {
      return refuse(
          "unit_tokens",
          fmt::format("one unit of layer {} would reach 4 GiB; use smaller units", layer));
    }
    const std::uint64_t slice = spec.slice_bytes(layer);
    object_bytes = spec.object_layout == ObjectLayout::kChunk
                       ? object_bytes + slice
                       : std::max(object_bytes, slice + (layer == 0 ? header_bytes : 0));
  }
  if (object_bytes > NamespaceSpec::kObjectBytesMax) {
    return refuse("chunk_tokens", fmt::format("an object would have {} bytes, more than the 5 GiB "
                                              "one PUT can carry; use smaller chunks",
                                              object_bytes));
  }
  return {};
}

}  // namespace

Result<void> validate(const NamespaceSpec& spec) {
  if (spec.format_version != NamespaceSpec::kFormatVersion) {
    return fail(ErrorCode::kIncompatible,
                fmt::format("version {} is unknown to this program, which knows version {}",
                            spec.format_version, NamespaceSpec::kFormatVersion),
                std::string(kAction), "format_version");
  }
  if (auto ok = check_texts(spec); !ok) return ok;
  if (auto ok = check_hash(spec); !ok) return ok;
  if (spec.codec != "none") return refuse("codec", "this version knows only \"none\"");
  if (spec.cipher != "none") return refuse("cipher", "this version knows only \"none\"");
  if (spec.object_layout != ObjectLayout::kChunk && spec.object_layout != ObjectLayout::kLayer) {
    return refuse("object_layout", "must be \"chunk\" or \"layer\"");
  }
  if (auto ok = check_tokens(spec); !ok) return ok;
  return check_sizes(spec);
}

Result<std::string> canonical_json(const NamespaceSpec& spec) {
  if (auto ok = validate(spec); !ok) return std::unexpected(std::move(ok).error());
  std::vector<std::pair<std::string_view, std::string>> fields;
  for (const auto& field : kTextFields) {
    fields.emplace_back(field.name, fmt::format("\"{}\"", spec.*field.member));
  }
  for (const auto& field : kNumberFields) {
    fields.emplace_back(field.name, fmt::format("{}", spec.*field.member));
  }
  fields.emplace_back(format::kObjectLayoutField,
                      spec.object_layout == ObjectLayout::kChunk ? "\"chunk\"" : "\"layer\"");
  const auto& sizes = spec.bytes_per_token;
  const bool equal = std::ranges::all_of(sizes, [&](auto bytes) { return bytes == sizes[0]; });
  fields.emplace_back(
      format::kBytesPerTokenField,
      equal ? fmt::format("{}", sizes[0]) : fmt::format("[{}]", fmt::join(sizes, ",")));
  std::ranges::sort(fields);

  std::string out = "{";
  for (const auto& [name, value] : fields) {
    out += fmt::format("{}\"{}\":{}", out.size() > 1 ? "," : "", name, value);
  }
  return out + "}";
}

Result<NamespaceDigest> namespace_digest(const NamespaceSpec& spec) {
  auto text = canonical_json(spec);
  if (!text) return std::unexpected(std::move(text).error());
  return NamespaceDigest{digest::sha256(digest::bytes_of(*text))};
}

std::uint32_t default_unit_tokens(std::uint32_t engine_block_tokens) noexcept {
  constexpr std::uint32_t kWanted = 64;
  const std::uint32_t block = engine_block_tokens;
  if (block == 0 || block > NamespaceSpec::kTokensMax) return 0;
  return (kWanted + block - 1) / block * block;
}

std::uint32_t default_chunk_tokens(std::uint32_t unit_tokens,
                                   std::uint64_t bytes_per_token) noexcept {
  constexpr std::uint64_t kSliceWanted = 1U << 20;
  constexpr std::uint32_t kChunkCap = 256;
  if (unit_tokens == 0 || unit_tokens > NamespaceSpec::kTokensMax || bytes_per_token == 0 ||
      bytes_per_token > NamespaceSpec::kBytesPerTokenMax) {
    return 0;
  }
  const std::uint64_t unit_bytes = unit_tokens * bytes_per_token;
  const std::uint64_t units_wanted = (kSliceWanted + unit_bytes - 1) / unit_bytes;
  const std::uint64_t units_cap = std::max<std::uint64_t>(1, kChunkCap / unit_tokens);
  return unit_tokens * static_cast<std::uint32_t>(std::min(units_wanted, units_cap));
}

}  // namespace objectcache
