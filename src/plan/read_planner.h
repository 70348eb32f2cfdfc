#pragma once

#include <cstdint>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::plan {

enum class PlanMode : std::uint8_t {
  kPlanned,       ///< Layer order; as wide as the due times allow. The default.
  kLayerwise,     ///< Strictly one layer after the other, one layer a request.
  kWholeObjects,  ///< One request a chunk, all layers, used as they arrive.
  kChunkwise,     ///< The same requests, but nothing is announced before everything is there.
  kPublished,     ///< The published switch: kChunkwise below a size, kLayerwise from there on.
};

/// What is to be read.
struct ReadJob {
  std::uint32_t chunks = 0;                ///< N.
  std::vector<std::uint64_t> slice_bytes;  ///< S(l) of a full chunk, for all L layers.
  std::uint64_t header_bytes = 0;          ///< Comes with layer 0 of every chunk.
  std::uint32_t first_layer = 0;           ///< Layers before it are not wanted.
  std::uint32_t units_per_chunk = 1;
  std::uint32_t last_chunk_units = 0;    ///< Leading units wanted of the last chunk; 0: all.
  std::uint32_t width_max = UINT32_MAX;  ///< Layers that one request can cover; layer objects: 1.
  /// c(l): how long the GPU computes layer l, for all L layers; empty: unknown.
  std::vector<Duration> windows = {};
};

/// What the way to the store is like, as configured or measured.
struct StoreCharacter {
  std::uint32_t connections = 16;     ///< K: requests of this read in flight.
  double bytes_per_s = 0;             ///< B: of all connections together; > 0.
  double connection_bytes_per_s = 0;  ///< Of one connection; 0: one can fill the link.
  Duration first_byte{};              ///< From a request to its first byte.
  /// How much of the first-byte times of later rounds the transfers of other connections fail to
  /// hide: 1 where all requests run in lockstep, 0 where they interleave perfectly.
  double first_byte_exposed = 0.25;
  double requests_per_s = 0;     ///< 0: no limit.
  double price_per_request = 0;  ///< In any currency.
};

struct PlanOptions {
  PlanMode mode = PlanMode::kPlanned;
  /// Requests are made no smaller than this where that costs no time.
  std::uint64_t request_bytes_min = 256 * 1024;
  /// kPublished: total bytes from which on it reads layerwise.
  std::uint64_t published_threshold_bytes = 512'000'000;
  /// A request of several layers must meet its due times even if it takes this much longer.
  double margin = 0.1;
};

/// A due time that never comes.
inline constexpr Duration kNever = Duration::max();

/// One request: layers [first_layer, first_layer + layer_count) of the leading `units` of a chunk.
struct RangeRead {
  std::uint32_t chunk = 0;
  std::uint32_t first_layer = 0;
  std::uint32_t layer_count = 0;
  std::uint32_t units = 0;
  /// Reads of one pass may share the link; a later pass gets only what an earlier one leaves.
  std::uint32_t pass = 0;
  /// When its first layer is due, from the start of the read; kNever where windows are unknown.
  Duration due = kNever;
  friend bool operator==(const RangeRead&, const RangeRead&) = default;
};

/// The answer: what to ask, in this order, over K connections.
struct ReadPlan {
  PlanMode mode = PlanMode::kPlanned;  ///< kPublished resolved to what it chose.
  bool announce_at_end = false;        ///< kChunkwise: no layer is announced before all are there.
  std::vector<RangeRead> reads;
  std::vector<std::uint32_t> widths;  ///< Layers of each pass.
  /// When each layer from first_layer on is there, with all before it; from the start of the read.
  std::vector<Duration> predicted_ready;
  /// The added TTFT: max over layers of (ready - the windows before it); 0: unknown windows.
  Duration predicted_stall{};
  double price = 0;  ///< Of all requests.
};

inline constexpr std::uint32_t kLayersMax = 1024;
inline constexpr std::uint32_t kReadsMax = 1U << 20;  ///< Of one plan: bounds its memory (32 MiB).

/// Plans one read. With K >= N one request a chunk delivers layer order by itself; with K < N
/// neighbouring layers are grouped, as many as the due times allow, after the smallest stall that
/// any grouping reaches. The formulas and the choices without windows: docs/internals/planner.md.
///
/// kInvalidArgument: arguments that do not fit together; kLimitExceeded: more than kReadsMax reads.
/// Pure; costs O(reads + L log L).
[[nodiscard]] Result<ReadPlan> plan_read(const ReadJob& job, const StoreCharacter& store,
                                         const PlanOptions& options = {});

}  // namespace objectcache::plan
