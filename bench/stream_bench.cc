// What a layer stream costs beside its bytes: a prefix in a memory store, read into the caller's
// memory and verified, against a plain copy with the same checksums.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/thread_event_loop.h"
#include "digest/crc32c.h"
#include "format/chunk_header.h"
#include "format/example_namespace.h"
#include "sched/earliest_due_first.h"
#include "store/memory/memory_store.h"
#include "stream/open_stream.h"

namespace objectcache::stream {
namespace {

constexpr std::uint32_t kChunks = 8;

/// Eight chunks of the shape of Llama 3.1 8B: 64 tokens, 32 layers of 256 KiB, 64 MiB in all.
struct Stored {
  ThreadEventLoop loop;
  store::MemoryStore store;
  MemoryBudget memory{{.capacity_bytes = 64 << 20}};
  AdmissionPoint admission{
      std::make_unique<sched::EarliestDueFirst>(sched::EarliestDueFirst::Options{})};
  std::shared_ptr<const ChunkSource> source;
  std::vector<ChunkKey> keys;
  std::vector<std::byte> chunk;
  std::vector<std::byte> destination;

  Stored() {
    NamespaceSpec spec = format::llama_namespace();
    spec.chunk_tokens = 64;
    const NamespaceDigest name = namespace_digest(spec).value();
    source = std::make_shared<ChunkSource>(
        ChunkSource{.layout = format::ChunkLayout::create(spec).value(),
                    .names = format::ObjectNames::create("", "default", name).value(),
                    .name = name,
                    .shard = {}});
    const auto& layout = source->layout;
    chunk.resize(layout.object_bytes(0));
    for (std::size_t i = layout.header_bytes(); i < chunk.size(); ++i) {
      chunk[i] = static_cast<std::byte>(i * 2654435761U >> 24);
    }
    for (std::uint32_t c = 0; c < kChunks; ++c) publish(c);
    destination.resize(layout.payload_bytes() * kChunks);
  }

  void publish(std::uint32_t index) {
    const auto& layout = source->layout;
    format::ChunkHeader header;
    header.name = source->name;
    header.shard = source->shard;
    header.key.bytes.fill(static_cast<std::byte>(index + 1));
    header.unit_keys = {UnitKey{header.key.bytes}};
    for (std::uint32_t l = 0; l < layout.layers(); ++l) {
      const auto slice = ConstSegment(chunk).subspan(layout.slice_offset(l), layout.slice_bytes(l));
      header.records.push_back({.stored_bytes = static_cast<std::uint32_t>(slice.size()),
                                .crc32c = digest::crc32c(slice)});
    }
    if (!format::encode_header(layout, header, Segment(chunk).first(layout.header_bytes()))) {
      std::abort();
    }
    keys.push_back(header.key);
    bool stored = false;
    store.put(loop,
              {.key = {source->names.object(header.key, source->shard)},
               .body = {ConstSegment(chunk)},
               .mode = store::PutMode::kReplace,
               .deadline = TimePoint::max()},
              [&](Result<store::PutAnswer> answer) { stored = answer.has_value(); });
    if (!loop.run_until([&] { return stored; }, loop.now() + std::chrono::seconds(60))) {
      std::abort();
    }
  }

  /// One whole read.
  void read(ReadMode mode) {
    ReadRequest request;
    request.chunks = keys;
    const std::uint64_t layer_bytes = source->layout.slice_bytes(0) * kChunks;
    std::vector<Segment> areas;
    for (std::uint32_t l = 0; l < source->layout.layers(); ++l) {
      areas.push_back(Segment(destination).subspan(l * layer_bytes, layer_bytes));
    }
    request.destination = Destination::contiguous(std::move(areas));
    request.deadline = loop.now() + std::chrono::seconds(60);
    const auto plan =
        plan::plan_read(read_job(source->layout, request), {.connections = 16, .bytes_per_s = 1e10},
                        {.mode = plan_mode(mode)})
            .value();
    auto stream =
        open_stream({.loop = loop, .store = store, .admission = admission, .memory = memory}, {},
                    source, std::move(request), plan)
            .value();
    const bool ended =
        loop.run_until([&] { return stream.ended(); }, loop.now() + std::chrono::seconds(60));
    if (!ended || stream.failure()) std::abort();
  }
};

void copy_and_check(benchmark::State& state) {
  Stored stored;
  const auto& layout = stored.source->layout;
  for (auto _ : state) {
    for (std::uint32_t c = 0; c < kChunks; ++c) {
      for (std::uint32_t l = 0; l < layout.layers(); ++l) {
        const auto to =
            Segment(stored.destination)
                .subspan((l * kChunks + c) * layout.slice_bytes(l), layout.slice_bytes(l));
        std::memcpy(to.data(), stored.chunk.data() + layout.slice_offset(l), to.size());
        benchmark::DoNotOptimize(digest::crc32c(to));
      }
    }
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(stored.destination.size()));
}
BENCHMARK(copy_and_check)->Unit(benchmark::kMillisecond);

void read_stream(benchmark::State& state) {
  Stored stored;
  for (auto _ : state) stored.read(static_cast<ReadMode>(state.range(0)));
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(stored.destination.size()));
}
BENCHMARK(read_stream)
    ->Arg(static_cast<int>(ReadMode::kPlanned))
    ->Arg(static_cast<int>(ReadMode::kLayerwise))
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace objectcache::stream
