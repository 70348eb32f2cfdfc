// What it costs to name the units of a prompt, and to read the header of a chunk.
#include <benchmark/benchmark.h>

#include <vector>

#include "format/chunk_header.h"
#include "format/example_namespace.h"
#include "objectcache/key_chain.h"

namespace {

using namespace objectcache;          // NOLINT
using namespace objectcache::format;  // NOLINT

void unit_key(benchmark::State& state) {
  const std::vector<TokenId> tokens(static_cast<std::size_t>(state.range(0)), 7);
  KeyChain chain(NamespaceDigest{}, "salt");
  for (auto _ : state) benchmark::DoNotOptimize(chain.append(tokens));
}
BENCHMARK(unit_key)->Arg(16)->Arg(64)->Arg(256)->Name("unit_key/tokens");

void prompt_keys(benchmark::State& state) {
  const std::vector<TokenId> tokens(65'536, 7);
  const NamespaceSpec spec = llama_namespace();
  for (auto _ : state) benchmark::DoNotOptimize(unit_keys(spec, "salt", tokens));
}
BENCHMARK(prompt_keys)->Name("unit_keys/65536_tokens")->Unit(benchmark::kMicrosecond);

void header(benchmark::State& state) {
  const ChunkLayout layout = *ChunkLayout::create(llama_namespace());
  ChunkHeader value;
  value.unit_keys.resize(layout.units());
  for (std::uint32_t i = 0; i < layout.layers() * layout.units(); ++i) {
    value.records.push_back({.stored_bytes = 64 * 4096, .crc32c = i});
  }
  std::vector<std::byte> bytes(layout.header_bytes());
  if (!encode_header(layout, value, bytes)) state.SkipWithError("encode");
  const ExpectedChunk expected;
  for (auto _ : state) benchmark::DoNotOptimize(decode_header(layout, bytes, expected));
}
BENCHMARK(header)->Name("decode_header/llama");

}  // namespace
