#include "cli/bench/layers_prefix.h"

#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "cli/modelled_gpu.h"
#include "format/chunk_layout.h"
#include "objectcache/key_chain.h"

namespace objectcache::cli {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::chrono::seconds kPatience{120};
constexpr std::uint32_t kRateConnections = 16;
constexpr std::uint64_t kRateBytes = 64U << 20;

NamespaceSpec spec_of(const ScaledRow& row, ObjectLayout layout) {
  return {.model_architecture = "bench-layers",
          .model_fingerprint = "bench",
          .adapter_id = "none",
          .adapter_revision = "none",
          .kv_dtype = "bfloat16",
          .kv_quantization = "none",
          .kv_scales = "none",
          .position_encoding = "bench",
          .attention_backend = "bench",
          .element_order = "bench",
          .instruction_set = "any",
          .layers = kRowLayers,
          .bytes_per_token = {row.bytes_per_token},
          .engine_block_tokens = 16,
          .unit_tokens = kRowChunkTokens,
          .chunk_tokens = kRowChunkTokens,
          .hash_algorithm = "sha256-chain",
          .hash_seed = "none",
          .codec = "none",
          .cipher = "none",
          .object_layout = layout};
}

TimePoint now() { return std::chrono::steady_clock::now(); }
/// Of all threads of the process.
double cpu_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
}
double milliseconds(Duration duration) { return Milliseconds(duration).count(); }

}  // namespace

void LayersPrefix::Memory::fit(std::uint64_t bytes) {
  const std::size_t before = written.size();
  if (before >= bytes) return;
  written.resize(bytes);
  read.resize(bytes);
  std::uint64_t state = before + 1;  // No two places look alike.
  for (std::size_t i = before; i + sizeof state <= bytes; i += sizeof state) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    std::memcpy(written.data() + i, &state, sizeof state);
  }
}

Result<LayersPrefix> LayersPrefix::create(const ScaledRow& row, ObjectLayout layout,
                                          double compute_layer_ms, Cache& cache, Memory& memory) {
  auto space = cache.open_namespace(spec_of(row, layout));
  if (!space) return std::unexpected(std::move(space.error()));
  LayersPrefix out(row, compute_layer_ms, std::move(*space), memory);
  const std::vector<TokenId> tokens(std::size_t{row.chunks} * kRowChunkTokens, 7);
  auto units = unit_keys(out.space_.spec(), "", tokens);
  if (!units) return std::unexpected(std::move(units.error()));
  out.units_ = std::move(*units);
  out.chunks_ = chunk_keys(out.units_, out.space_.spec().units_per_chunk());
  out.header_bytes_ = std::uint64_t{row.chunks} * format::padded_header_bytes(kRowLayers, 1);
  memory.fit(row.payload_bytes());
  return out;
}

Result<void> LayersPrefix::write(Cache& cache) {
  auto space = cache.open_namespace(space_.spec());
  if (!space) return std::unexpected(std::move(space.error()));
  auto writer = space->open_writer(units_);
  if (!writer) return std::unexpected(std::move(writer.error()));
  const ConstSegment written(memory_.written);
  for (std::uint32_t chunk = 0; chunk < row_.chunks; ++chunk) {
    for (std::uint32_t layer = 0; layer < kRowLayers; ++layer) {
      const ConstSegment slice = written.subspan(
          layer * row_.layer_bytes() + chunk * row_.slice_bytes(), row_.slice_bytes());
      if (auto ok = writer->write_slice(layer, chunk, {&slice, 1}); !ok) return ok;
    }
  }
  auto summary = writer->finish(now() + kPatience);
  if (!summary) return std::unexpected(std::move(summary.error()));
  if (!summary->first_error.empty()) {
    return std::unexpected(std::move(summary->first_error.front()));
  }
  if (summary->published + summary->already_present != row_.chunks) {
    return fail(ErrorCode::kLimitExceeded, "not all chunks were written", "bench layers");
  }
  return {};
}

ReadRequest LayersPrefix::request(ReadMode mode, std::uint32_t connections) {
  ReadRequest out;
  out.chunks = chunks_;
  std::vector<Segment> areas;
  for (std::uint32_t layer = 0; layer < kRowLayers; ++layer) {
    areas.push_back(Segment(memory_.read).subspan(layer * row_.layer_bytes(), row_.layer_bytes()));
  }
  out.destination = Destination::contiguous(std::move(areas));
  out.mode = mode;
  out.connections_max = connections;
  out.deadline = now() + kPatience;
  return out;
}

Result<LayersRead> LayersPrefix::read(const LayersWay& way, std::uint32_t connections) {
  const std::vector<Duration> windows(
      kRowLayers, std::chrono::duration_cast<Duration>(Milliseconds(compute_layer_ms_)));
  ReadRequest wanted = request(way.mode, connections);
  wanted.windows = windows;
  const TimePoint deadline = wanted.deadline;
  const double cpu_before = cpu_seconds();
  const TimePoint start = now();
  auto stream = space_.open_stream(std::move(wanted));
  if (!stream) return std::unexpected(std::move(stream.error()));
  auto run = run_modelled_gpu(
      start, windows,
      [&](std::uint32_t layer) {
        return stream->wait(way.whole_first ? kRowLayers - 1 : layer, deadline);
      },
      [&] { return stream->ready_layers() == kRowLayers; });
  if (!run) return std::unexpected(std::move(run.error()));
  const double cpu_s = cpu_seconds() - cpu_before;
  const StreamStats stats = stream->stats();
  return LayersRead{.ttft_ms = milliseconds(run->ttft),
                    .first_byte_ms = milliseconds(stats.first_byte),
                    .layer0_ms = milliseconds(stats.layer_ready.front()),
                    .loaded_ms = milliseconds(stats.layer_ready.back()),
                    .cpu_s = cpu_s,
                    .requests = stats.requests};
}

Result<double> LayersPrefix::payload_rate() {
  double bytes = 0;
  double seconds = 0;
  do {
    ReadRequest wanted = request(ReadMode::kWholeObjects, kRateConnections);
    const TimePoint deadline = wanted.deadline;
    auto stream = space_.open_stream(std::move(wanted));
    if (!stream) return std::unexpected(std::move(stream.error()));
    if (auto ok = stream->wait(kRowLayers - 1, deadline); !ok) {
      return std::unexpected(std::move(ok.error()));
    }
    const StreamStats stats = stream->stats();
    bytes += static_cast<double>(row_.payload_bytes());
    seconds += std::chrono::duration<double>(stats.layer_ready.back() - stats.first_byte).count();
  } while (bytes < static_cast<double>(kRateBytes));
  return bytes / seconds;
}

Result<void> LayersPrefix::check() const {
  if (std::memcmp(memory_.read.data(), memory_.written.data(), row_.payload_bytes()) == 0) {
    return {};
  }
  return fail(ErrorCode::kInternal, "what was read is not what was written", "bench layers");
}

std::string LayersPrefix::name_hex() const {
  const auto digest = namespace_digest(space_.spec());
  return digest ? digest->hex().substr(0, 32) : std::string();
}

}  // namespace objectcache::cli
