#include "cli/modelled_gpu.h"

#include <algorithm>
#include <thread>

namespace objectcache::cli {

Result<GpuRun> run_modelled_gpu(TimePoint start, const std::vector<Duration>& windows,
                                const std::function<Result<void>(std::uint32_t)>& wait,
                                const std::function<bool()>& all_there) {
  using Clock = std::chrono::steady_clock;
  GpuRun run;
  TimePoint free_at = start;  // When the GPU has finished the layer before.
  for (std::uint32_t layer = 0; layer < windows.size(); ++layer) {
    const TimePoint asked = Clock::now();
    if (auto ok = wait(layer); !ok) return std::unexpected(std::move(ok.error()));
    const TimePoint answered = Clock::now();
    // A wait that did not block means that the layer was there when the GPU became free.
    constexpr Duration kCostOfAsking = std::chrono::microseconds(20);
    const bool was_there = answered - asked < kCostOfAsking;
    const TimePoint begin = was_there && layer > 0 ? free_at : std::max(free_at, answered);
    run.stall += begin - free_at;
    free_at = begin + windows[layer];
    run.layers.push_back({.loaded = answered - start,
                          .compute_begin = begin - start,
                          .compute_end = free_at - start});
    if (!all_there || !all_there()) std::this_thread::sleep_until(free_at);
  }
  run.ttft = free_at - start;
  return run;
}

}  // namespace objectcache::cli
