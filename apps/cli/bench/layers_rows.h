#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace objectcache::cli {

/// One measured row of the published evaluation: Llama 3.1 8B on an A100 80 GB, a prompt of which
/// `cached_tokens` are stored, and how long its step computes when nothing has to be loaded.
struct LayersRow {
  const char* name;
  std::uint32_t cached_tokens;
  double compute_ms;
};
[[nodiscard]] std::span<const LayersRow> layers_rows();

inline constexpr std::uint32_t kRowLayers = 32;
inline constexpr std::uint32_t kRowChunkTokens = 64;
inline constexpr std::uint64_t kRowBytesPerToken = 4096;  ///< Of one layer.
inline constexpr double kRowLinkBytesPerSecond = 100e9 / 8;

/// How a row is replayed on a slower link: bytes and link are divided by f together, so that every
/// time of the model stays what it was.
enum class RowScaling : std::uint8_t {
  kChunks,  ///< f times fewer chunks, slices as they are.
  kSlices,  ///< All chunks, slices f times smaller.
};
[[nodiscard]] const char* row_scaling_name(RowScaling scaling);

struct ScaledRow {
  std::uint32_t chunks = 0;  ///< N.
  std::uint64_t bytes_per_token = 0;
  std::uint32_t connections = 0;  ///< K.
  double link_bytes_per_s = 0;
  [[nodiscard]] std::uint64_t slice_bytes() const { return bytes_per_token * kRowChunkTokens; }
  [[nodiscard]] std::uint64_t layer_bytes() const { return slice_bytes() * chunks; }
  [[nodiscard]] std::uint64_t payload_bytes() const { return layer_bytes() * kRowLayers; }
};
/// Empty where the row does not divide by f: too few chunks (prompts of 4K are never scaled so), or
/// slices that would not be whole tokens.
///
/// K is 16. With fewer chunks it is a quarter of them: else there would be a connection for each
/// chunk, and every way of reading would look good.
[[nodiscard]] std::optional<ScaledRow> scale_row(const LayersRow& row, RowScaling scaling,
                                                 std::uint32_t f);

/// The TTFT when layer l+1 is loaded while layer l is computed and nothing else costs time:
/// `L*c + X + (L-1)*max(0, X-c)`, X and c of one layer.
[[nodiscard]] double ideal_ttft_ms(double compute_layer_ms, double transfer_layer_ms);

}  // namespace objectcache::cli
