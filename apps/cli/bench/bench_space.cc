#include "cli/bench/bench_space.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/random.h"
#include "digest/crc32c.h"
#include "format/chunk_header.h"
#include "format/names.h"
#include "objectcache/key_chain.h"

namespace objectcache::cli {
namespace {

NamespaceSpec spec_of(const BenchShape& shape) {
  NamespaceSpec spec;
  spec.model_architecture = "bench";
  spec.model_fingerprint = "none";
  spec.adapter_id = spec.adapter_revision = "none";
  spec.kv_dtype = "bfloat16";
  spec.kv_quantization = spec.kv_scales = "none";
  spec.position_encoding = "none";
  spec.attention_backend = "none";
  spec.element_order = "none";
  spec.instruction_set = "any";
  spec.layers = shape.layers;
  spec.bytes_per_token = {shape.bytes_per_token};
  spec.engine_block_tokens = shape.unit_tokens;
  spec.unit_tokens = shape.unit_tokens;
  spec.chunk_tokens = shape.chunk_tokens;
  spec.hash_algorithm = "sha256-chain";
  spec.hash_seed = "none";
  spec.codec = spec.cipher = "none";
  return spec;
}

std::vector<std::byte> random_bytes(std::uint64_t size) {
  std::vector<std::byte> out(size);
  Random random(7);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random.next());
  return out;
}

}  // namespace

Result<BenchSpace> BenchSpace::create(const BenchShape& shape) {
  BenchSpace out;
  out.spec_ = spec_of(shape);
  auto digest = namespace_digest(out.spec_);
  if (!digest) return std::unexpected(std::move(digest.error()));
  out.digest_ = *digest;
  auto layout = format::ChunkLayout::create(out.spec_);
  if (!layout) return std::unexpected(std::move(layout.error()));
  out.layout_ = std::make_shared<format::ChunkLayout>(std::move(*layout));
  std::vector<TokenId> tokens(std::size_t{shape.chunks} * shape.chunk_tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<TokenId>(shape.seed * 1000 + i % 997);
  }
  auto units = unit_keys(out.spec_, "", tokens);
  if (!units) return std::unexpected(std::move(units.error()));
  out.units_ = std::move(*units);
  out.chunks_ = chunk_keys(out.units_, out.spec_.units_per_chunk());
  return out;
}

Result<void> BenchSpace::put(BenchStore& store, std::uint32_t count) const {
  auto names = format::ObjectNames::create("", format::kDefaultTenant, digest_);
  if (!names) return std::unexpected(std::move(names.error()));
  const std::vector<std::byte> payload = random_bytes(layout_->payload_bytes());
  format::ChunkHeader header;
  header.name = digest_;
  header.created_unix_ms =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  std::size_t at = 0;
  for (std::uint32_t layer = 0; layer < layout_->layers(); ++layer) {
    for (std::uint32_t unit = 0; unit < layout_->units(); ++unit) {
      const std::uint64_t size = layout_->unit_bytes(layer);
      header.records.push_back({.stored_bytes = static_cast<std::uint32_t>(size),
                                .crc32c = digest::crc32c(ConstSegment(payload).subspan(at, size))});
      at += size;
    }
  }
  std::vector<std::vector<std::byte>> heads(count);
  std::optional<Error> problem;
  auto done = store.put(count, [&](std::uint32_t i) {
    const std::uint32_t units = layout_->units();
    header.key = chunks_[i];
    header.parent = i == 0 ? ChunkKey{} : chunks_[i - 1];
    header.unit_keys.assign(units_.begin() + i * units, units_.begin() + (i + 1) * units);
    heads[i].resize(layout_->header_bytes());
    if (auto ok = format::encode_header(*layout_, header, heads[i]); !ok) problem = ok.error();
    return BenchStore::Object{names->object(chunks_[i], Shard{}), {heads[i], payload}};
  });
  if (problem) return std::unexpected(std::move(*problem));
  return done;
}

}  // namespace objectcache::cli
