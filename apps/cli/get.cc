#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/kv_file.h"
#include "cli/prefix.h"

namespace objectcache::cli {
namespace {

/// Where each layer lies in the output file: the read goes straight into the mapped file.
Destination destination_in(Segment file, std::uint64_t data_offset, const KvFilePlan& plan) {
  std::vector<Segment> layers(plan.tensors.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    layers[plan.order[i]] =
        file.subspan(data_offset + plan.tensors[i].begin, plan.tensors[i].size_bytes());
  }
  return Destination::contiguous(std::move(layers));
}

Result<void> wait_for_layers(LayerStream& stream, std::chrono::milliseconds deadline,
                             Console& console) {
  const TimePoint until = deadline_after(deadline);
  for (std::uint32_t layer = 0; layer < stream.layers(); ++layer) {
    if (auto ok = stream.wait(layer, until); !ok) return ok;
    console.progress("get", layer + 1, stream.layers(), "layers");
  }
  console.progress_end();
  return {};
}

}  // namespace

ExitCode run_get(const GetOptions& options, Console& console) {
  auto mode = parse_read_mode(options.mode);
  if (!mode) return console.error(mode.error());
  auto prefix = open_prefix(options.store, options.prefix);
  if (!prefix) return console.error(prefix.error());
  auto match = prefix->space->match(prefix->chunks, deadline_after(options.store.deadline));
  if (!match) return console.error(match.error());
  const auto wanted = static_cast<std::uint32_t>(prefix->chunks.size());
  if (match->chunks == 0 || (options.require_all && match->chunks < wanted)) {
    console.line(fmt::format("miss: {} of {} chunks are stored", match->chunks, wanted));
    console.document({{"chunks_matched", match->chunks}, {"chunks_wanted", wanted}});
    return ExitCode::kMiss;
  }

  const std::uint64_t tokens = std::uint64_t{match->chunks} * prefix->spec().chunk_tokens;
  const KvFilePlan plan = plan_kv_file(prefix->spec(), tokens);
  const std::string head = make_safetensors_head(plan.tensors);
  auto file = MappedFile::create(options.out_file, head.size() + plan.data_bytes);
  if (!file) return console.error(file.error());
  std::memcpy(file->bytes().data(), head.data(), head.size());

  const auto started = std::chrono::steady_clock::now();
  ReadRequest request;
  request.chunks.assign(prefix->chunks.begin(), prefix->chunks.begin() + match->chunks);
  request.destination = destination_in(file->bytes(), head.size(), plan);
  request.deadline = deadline_after(options.store.deadline);
  request.mode = *mode;
  request.connections_max = options.connections;
  auto stream = prefix->space->open_stream(std::move(request));
  if (!stream) return console.error(stream.error());
  if (auto ok = wait_for_layers(*stream, options.store.deadline, console); !ok) {
    return console.error(ok.error());
  }
  const auto elapsed = std::chrono::steady_clock::now() - started;
  const StreamStats stats = stream->stats();
  if (auto ok = file->publish(); !ok) return console.error(ok.error());

  const double seconds = std::chrono::duration<double>(elapsed).count();
  const Duration first_layer = stats.layer_ready.empty() ? Duration{} : stats.layer_ready.front();
  console.line(fmt::format(
      "{} tokens ({} of {} chunks), {} in {} ({}); layer 0 after {}", tokens, match->chunks, wanted,
      human_bytes(plan.data_bytes), human_duration(elapsed),
      human_rate(static_cast<double>(plan.data_bytes) / seconds), human_duration(first_layer)));
  console.document(
      {{"chunks_matched", match->chunks},
       {"chunks_wanted", wanted},
       {"tokens", tokens},
       {"bytes", plan.data_bytes},
       {"requests", stats.requests},
       {"first_layer_ms", std::chrono::duration<double, std::milli>(first_layer).count()},
       {"seconds", seconds}});
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
