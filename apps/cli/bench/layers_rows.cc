#include "cli/bench/layers_rows.h"

#include <algorithm>

namespace objectcache::cli {
namespace {

constexpr LayersRow kRows[] = {{"4K/50", 2'048, 185.31},    {"4K/87.5", 3'584, 63.47},
                               {"16K/50", 8'192, 955.89},   {"16K/87.5", 14'336, 281.76},
                               {"32K/50", 16'384, 2589.25}, {"32K/87.5", 28'672, 763.19},
                               {"64K/50", 32'768, 8672.79}, {"64K/87.5", 57'344, 2423.90}};
constexpr std::uint32_t kConnections = 16;
constexpr std::uint32_t kTokensMinFewerChunks = 8'192;

}  // namespace

std::span<const LayersRow> layers_rows() { return kRows; }

const char* row_scaling_name(RowScaling scaling) {
  return scaling == RowScaling::kChunks ? "chunks" : "slices";
}

std::optional<ScaledRow> scale_row(const LayersRow& row, RowScaling scaling, std::uint32_t f) {
  if (f == 0) return std::nullopt;
  ScaledRow out{.chunks = row.cached_tokens / kRowChunkTokens,
                .bytes_per_token = kRowBytesPerToken,
                .connections = kConnections,
                .link_bytes_per_s = kRowLinkBytesPerSecond / f};
  if (scaling == RowScaling::kSlices) {
    if (out.bytes_per_token % f != 0) return std::nullopt;
    out.bytes_per_token /= f;
    return out;
  }
  if (row.cached_tokens < kTokensMinFewerChunks || out.chunks % f != 0) return std::nullopt;
  out.chunks /= f;
  out.connections = std::max(1U, out.chunks / 4);
  return out;
}

double ideal_ttft_ms(double compute_layer_ms, double transfer_layer_ms) {
  return kRowLayers * compute_layer_ms + transfer_layer_ms +
         (kRowLayers - 1) * std::max(0.0, transfer_layer_ms - compute_layer_ms);
}

}  // namespace objectcache::cli
