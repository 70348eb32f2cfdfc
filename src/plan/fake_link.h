#pragma once

#include <cstdint>
#include <vector>

#include "plan/read_planner.h"

namespace objectcache::plan {

/// How a FakeLink treats a later pass.
enum class PassRule : std::uint8_t {
  kBarrier,   ///< It is not even asked for before the earlier one is complete.
  kLeftover,  ///< It is asked for as connections become free, and gets what bandwidth is left over.
};

/// A store behind a link, as a fluid: K connections, each carries one request at a time; after its
/// first-byte time a request gets its fair share of the bandwidth. For tests: it has no slow start
/// and no loss, which real links have; first-byte times vary by `jitter` (0.3: 70 % to 130 %), the
/// same way in every run.
///
/// Returns when each layer from job.first_layer on is complete over all chunks, in seconds.
std::vector<double> simulate_link(const std::vector<RangeRead>& reads, const ReadJob& job,
                                  const StoreCharacter& store, PassRule rule, double jitter = 0);

}  // namespace objectcache::plan
