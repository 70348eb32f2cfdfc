#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/timeline.h"
#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::cli {

/// What a run against the modelled GPU came to.
struct GpuRun {
  std::vector<LayerSpan> layers;
  Duration ttft{};   ///< From the start to the end of the last layer.
  Duration stall{};  ///< Time in which the GPU had to wait, layer 0 included.
};

/// Stands in for a GPU that computes layer l for windows[l] once its KV is there: waits, and sleeps
/// instead of computing. A sleep that overshoots is not charged to the next layer when that layer
/// was there in time. `wait(layer)` blocks until the layer is in place. Once `all_there()` says
/// true, nothing can delay the rest any more, and it is computed without sleeping.
///
/// Source of the model: T = X0 + sum of max(X(l+1), C(l)) + C(L-1) is what it gives when layers
/// arrive X(l) apart and nothing is loaded ahead.
[[nodiscard]] Result<GpuRun> run_modelled_gpu(
    TimePoint start, const std::vector<Duration>& windows,
    const std::function<Result<void>(std::uint32_t layer)>& wait,
    const std::function<bool()>& all_there = {});

}  // namespace objectcache::cli
