#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/kv_file.h"
#include "cli/prefix.h"

namespace objectcache::cli {
namespace {

/// The slices of a KV file: where layer l of chunk i lies in the mapped file.
class KvSource {
 public:
  static Result<KvSource> open(const std::string& path, const NamespaceSpec& spec,
                               std::uint64_t tokens) {
    auto file = MappedFile::open(path);
    if (!file) return std::unexpected(std::move(file.error()));
    const std::span<const std::byte> bytes = file->bytes();
    if (bytes.size() < 8) {
      return fail(ErrorCode::kInvalidArgument, "too short for a safetensors file", "read", path);
    }
    const auto head_bytes = safetensors_head_bytes(bytes.first<8>(), bytes.size());
    if (!head_bytes) return named(head_bytes.error(), path);
    auto head = parse_safetensors_head(bytes.first(*head_bytes), bytes.size());
    if (!head) return named(head.error(), path);
    auto layers = layers_of(*head, spec, tokens);
    if (!layers) return named(layers.error(), path);
    return KvSource(std::move(*file), std::move(*head), std::move(*layers));
  }

  [[nodiscard]] ConstSegment slice(const NamespaceSpec& spec, std::uint32_t layer,
                                   std::uint32_t chunk) const {
    const std::uint64_t bytes = spec.slice_bytes(layer);
    const std::uint64_t start = head_.data_offset + head_.tensors[layers_[layer]].begin;
    return std::span<const std::byte>(file_.bytes()).subspan(start + chunk * bytes, bytes);
  }

 private:
  KvSource(MappedFile file, SafetensorsHead head, std::vector<std::size_t> layers)
      : file_(std::move(file)), head_(std::move(head)), layers_(std::move(layers)) {}

  static std::unexpected<Error> named(Error error, const std::string& path) {
    error.key = error.key.empty() ? path : fmt::format("{} ({})", path, error.key);
    return std::unexpected(std::move(error));
  }

  MappedFile file_;
  SafetensorsHead head_;
  std::vector<std::size_t> layers_;
};

/// Writes chunks [first, last): few enough that the write budget holds them all.
Result<WriteSummary> put_batch(OpenPrefix& prefix, const KvSource& source, std::uint32_t first,
                               std::uint32_t last, std::chrono::milliseconds deadline) {
  const NamespaceSpec& spec = prefix.spec();
  const std::size_t units = std::size_t{last} * spec.units_per_chunk();
  auto writer = prefix.space->open_writer(std::span(prefix.units).first(units), first);
  if (!writer) return std::unexpected(std::move(writer.error()));
  for (std::uint32_t chunk = first; chunk < last; ++chunk) {
    if (!writer->wants(chunk)) continue;
    for (std::uint32_t layer = 0; layer < spec.layers; ++layer) {
      const ConstSegment slice = source.slice(spec, layer, chunk);
      if (auto ok = writer->write_slice(layer, chunk, {&slice, 1}); !ok) {
        return std::unexpected(std::move(ok.error()));
      }
    }
  }
  return writer->finish(deadline_after(deadline));
}

void add(WriteSummary& sum, WriteSummary&& part) {
  sum.published += part.published;
  sum.already_present += part.already_present;
  sum.dropped += part.dropped;
  sum.abandoned += part.abandoned;
  sum.failed += part.failed;
  sum.bytes_published += part.bytes_published;
  if (sum.first_error.empty()) sum.first_error = std::move(part.first_error);
}

}  // namespace

ExitCode run_put(const PutOptions& options, Console& console) {
  CacheOptions cache_options;
  auto prefix = open_prefix(options.store, options.prefix, cache_options);
  if (!prefix) return console.error(prefix.error());
  auto source = KvSource::open(options.kv_file, prefix->spec(), prefix->tokens.size());
  if (!source) return console.error(source.error());

  const auto started = std::chrono::steady_clock::now();
  std::uint64_t chunk_bytes = 0;
  for (std::uint32_t l = 0; l < prefix->spec().layers; ++l) {
    chunk_bytes += prefix->spec().slice_bytes(l);
  }
  const auto chunks = static_cast<std::uint32_t>(prefix->chunks.size());
  const auto batch = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      cache_options.write_memory_bytes / 4 / std::max<std::uint64_t>(1, chunk_bytes), 1, 256));
  WriteSummary sum;
  for (std::uint32_t first = 0; first < chunks; first += batch) {
    const std::uint32_t last = std::min(chunks, first + batch);
    console.progress("put", first, chunks, "chunks");
    auto part = put_batch(*prefix, *source, first, last, options.store.deadline);
    if (!part) return console.error(part.error());
    add(sum, std::move(*part));
    if (sum.failed > 0 || sum.dropped > 0) break;
  }
  console.progress_end();
  if (!sum.first_error.empty()) return console.error(sum.first_error.front());
  if (sum.dropped + sum.abandoned + sum.failed > 0) {
    return console.error(Error{.code = ErrorCode::kLimitExceeded,
                               .message = fmt::format("{} chunks were dropped", sum.dropped),
                               .action = "put",
                               .key = options.store.url,
                               .s3_code = {},
                               .request_id = {}});
  }

  const auto elapsed = std::chrono::steady_clock::now() - started;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  console.line(fmt::format("{} chunks of {} tokens: {} published, {} already there; {} in {} ({})",
                           chunks, prefix->spec().chunk_tokens, sum.published, sum.already_present,
                           human_bytes(sum.bytes_published), human_duration(elapsed),
                           human_rate(static_cast<double>(sum.bytes_published) / seconds)));
  console.line(prefix->tail_tokens() == 0
                   ? std::string("no tail: every token is stored")
                   : fmt::format("{} tail tokens do not fill a chunk and were left out",
                                 prefix->tail_tokens()));
  console.document({{"chunks", chunks},
                    {"published", sum.published},
                    {"already_present", sum.already_present},
                    {"bytes_published", sum.bytes_published},
                    {"tokens_stored", std::size_t{chunks} * prefix->spec().chunk_tokens},
                    {"tail_tokens_left_out", prefix->tail_tokens()},
                    {"seconds", seconds}});
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
