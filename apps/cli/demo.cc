#include "cli/demo.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cache/cache_impl.h"
#include "cli/modelled_gpu.h"
#include "cli/timeline.h"
#include "objectcache/cache.h"
#include "objectcache/key_chain.h"
#include "store/modelled/modelled_link_store.h"
#include "store/open_store.h"

namespace objectcache::cli {
namespace {

// The published row "16K prompt, 87.5 % cached" of Llama 3.1 8B on an A100 behind 100 Gbit/s.
constexpr std::uint32_t kLayers = 32;
constexpr std::uint32_t kCachedTokens = 14'336;
constexpr std::uint32_t kChunkTokens = 64;
constexpr std::uint64_t kBytesPerToken = 4096;  // 8 KV heads x 128 x 2 (K and V) x 2 bytes.
constexpr double kLinkBytesPerSecond = 100e9 / 8;
constexpr Duration kWindow = std::chrono::microseconds(8800);
constexpr Duration kFirstByte = std::chrono::milliseconds(1);
constexpr Duration kPatience = std::chrono::seconds(60);

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "objectcache-demo-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

NamespaceSpec demo_namespace() {
  return {.model_architecture = "LlamaForCausalLM",
          .model_fingerprint = "demo",
          .adapter_id = "none",
          .adapter_revision = "none",
          .kv_dtype = "bfloat16",
          .kv_quantization = "none",
          .kv_scales = "none",
          .position_encoding = "demo",
          .attention_backend = "demo",
          .element_order = "[token,2,8,128]",
          .instruction_set = "any",
          .layers = kLayers,
          .bytes_per_token = {kBytesPerToken},
          .engine_block_tokens = 16,
          .unit_tokens = kChunkTokens,
          .chunk_tokens = kChunkTokens,
          .hash_algorithm = "sha256-chain",
          .hash_seed = "none",
          .codec = "none",
          .cipher = "none"};
}

/// A prefix in memory, once as written and once as read back.
class Demo {
 public:
  explicit Demo(std::uint32_t scale)
      : scale_(scale),
        chunks_(kCachedTokens / kChunkTokens / scale),
        layer_bytes_(std::uint64_t{chunks_} * kChunkTokens * kBytesPerToken),
        written_(kLayers * layer_bytes_),
        read_(written_.size()) {
    std::uint64_t state = 1;  // Any bytes will do, if no two places look alike.
    for (std::size_t i = 0; i + 8 <= written_.size(); i += 8) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      std::memcpy(written_.data() + i, &state, 8);
    }
  }

  Result<void> open() {
    if (folder_.path().empty()) {
      return fail(ErrorCode::kPermissionDenied, "cannot make a temporary folder", "demo");
    }
    auto cache = Cache::Impl::open({}, [this]() -> Result<std::unique_ptr<store::ObjectStore>> {
      auto files = store::open_store("file:" + folder_.path(), Environment{});
      if (!files) return files;
      files_ = std::move(*files);
      return std::make_unique<store::ModelledLinkStore>(
          *files_,
          store::ModelledLinkStore::Options{.first_byte = kFirstByte,
                                            .read_bytes_per_second = kLinkBytesPerSecond / scale_});
    });
    if (!cache) return std::unexpected(std::move(cache.error()));
    cache_ = std::move(*cache);
    auto space = cache_->open_namespace(demo_namespace());
    if (!space) return std::unexpected(std::move(space.error()));
    space_.emplace(std::move(*space));
    const std::vector<TokenId> tokens(std::size_t{chunks_} * kChunkTokens, 7);
    auto units = unit_keys(space_->spec(), "", tokens);
    if (!units) return std::unexpected(std::move(units.error()));
    units_ = std::move(*units);
    return {};
  }

  Result<WriteSummary> write() {
    auto writer = space_->open_writer(units_);
    if (!writer) return std::unexpected(std::move(writer.error()));
    const std::uint64_t slice_bytes = space_->spec().slice_bytes(0);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      for (std::uint32_t chunk = 0; chunk < chunks_; ++chunk) {
        const ConstSegment slice =
            ConstSegment(written_).subspan(layer * layer_bytes_ + chunk * slice_bytes, slice_bytes);
        if (auto ok = writer->write_slice(layer, chunk, {&slice, 1}); !ok) {
          return std::unexpected(std::move(ok.error()));
        }
      }
    }
    return writer->finish(std::chrono::steady_clock::now() + kPatience);
  }

  Result<Match> match() {
    return space_->match(keys(), std::chrono::steady_clock::now() + kPatience);
  }

  /// Reads everything back against the modelled GPU, which starts with layer 0 either when the
  /// whole prefix is there, or as soon as layer 0 is.
  Result<GpuRun> read(ReadMode mode, bool whole_first) {
    std::ranges::fill(read_, std::byte{0});
    std::vector<Segment> layers;
    for (std::uint32_t l = 0; l < kLayers; ++l) {
      layers.push_back(Segment(read_).subspan(l * layer_bytes_, layer_bytes_));
    }
    ReadRequest request;
    request.chunks = keys();
    request.destination = Destination::contiguous(std::move(layers));
    request.windows.assign(kLayers, kWindow);
    request.mode = mode;
    const TimePoint start = std::chrono::steady_clock::now();
    request.deadline = start + kPatience;
    auto stream = space_->open_stream(std::move(request));
    if (!stream) return std::unexpected(std::move(stream.error()));
    auto run =
        run_modelled_gpu(start, std::vector<Duration>(kLayers, kWindow), [&](std::uint32_t l) {
          return stream->wait(whole_first ? kLayers - 1 : l, start + kPatience);
        });
    if (!run) return run;
    const StreamStats stats = stream->stats();
    for (std::uint32_t l = 0; l < kLayers && l < stats.layer_ready.size(); ++l) {
      run->layers[l].loaded = stats.layer_ready[l];
    }
    if (std::memcmp(read_.data(), written_.data(), read_.size()) != 0) {
      return fail(ErrorCode::kInternal, "what was read is not what was written", "demo");
    }
    return run;
  }

  [[nodiscard]] std::uint32_t chunks() const { return chunks_; }
  [[nodiscard]] std::uint64_t bytes() const { return written_.size(); }
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

 private:
  [[nodiscard]] std::vector<ChunkKey> keys() const {
    return chunk_keys(units_, space_->spec().units_per_chunk());
  }

  const std::uint32_t scale_;
  const std::uint32_t chunks_;
  const std::uint64_t layer_bytes_;
  std::vector<std::byte> written_;
  std::vector<std::byte> read_;
  TemporaryFolder folder_;
  std::unique_ptr<store::ObjectStore> files_;  // Behind the link; outlives the cache.
  std::unique_ptr<Cache> cache_;
  std::optional<CacheNamespace> space_;
  std::vector<UnitKey> units_;
};

void introduce(const Demo& demo, std::uint32_t scale, Console& console) {
  console.line(fmt::format(
      "A prefix of {} tokens of Llama 3.1 8B ({} layers), scaled down by {}: {} chunks, {}.\n"
      "  store  file:{} behind a modelled link of {} (100 Gbit/s : {}), first byte {}\n"
      "  GPU    modelled: {} a layer, as published for an A100 with a 16K prompt, 87.5 % cached\n",
      kCachedTokens, kLayers, scale, demo.chunks(), human_bytes(demo.bytes()), demo.folder(),
      human_rate(kLinkBytesPerSecond / scale), scale, human_duration(kFirstByte),
      human_duration(kWindow)));
}

double milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void conclude(const Demo& demo, const GpuRun& whole, const GpuRun& layers, Console& console) {
  const int columns = std::clamp(console.columns() - 2, 60, 120);
  const Duration compute = kWindow * kLayers;
  console.line(fmt::format("Whole prefix first: TTFT {}\n{}", human_duration(whole.ttft),
                           draw_timeline(whole.layers, whole.ttft, columns)));
  console.line(fmt::format("Layer by layer:     TTFT {}\n{}{}", human_duration(layers.ttft),
                           draw_timeline(layers.layers, whole.ttft, columns),
                           draw_time_axis(whole.ttft, columns)));
  console.line(
      fmt::format("{:.2f} times sooner. Compute alone takes {}: loading costs {} instead of {}.\n"
                  "Every byte was checked against its CRC32C before its layer was announced, and "
                  "compared with\n"
                  "what was written.",
                  milliseconds(whole.ttft) / milliseconds(layers.ttft), human_duration(compute),
                  human_duration(layers.ttft - compute), human_duration(whole.ttft - compute)));
  console.document({{"chunks", demo.chunks()},
                    {"bytes", demo.bytes()},
                    {"compute_ms", milliseconds(compute)},
                    {"whole_prefix_ttft_ms", milliseconds(whole.ttft)},
                    {"layer_by_layer_ttft_ms", milliseconds(layers.ttft)}});
}

}  // namespace

ExitCode run_demo(const DemoOptions& options, Console& console) {
  Demo demo(options.scale);
  if (auto ok = demo.open(); !ok) return console.error(ok.error());
  introduce(demo, options.scale, console);
  auto written = demo.write();
  if (!written) return console.error(written.error());
  if (!written->first_error.empty()) return console.error(written->first_error.front());
  auto match = demo.match();
  if (!match) return console.error(match.error());
  console.line(fmt::format("wrote {} chunks; match finds {} of {} with {} requests\n",
                           written->published, match->chunks, demo.chunks(), match->probes));
  auto whole = demo.read(ReadMode::kChunkwise, true);
  if (!whole) return console.error(whole.error());
  auto layers = demo.read(ReadMode::kPlanned, false);
  if (!layers) return console.error(layers.error());
  conclude(demo, *whole, *layers, console);
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
