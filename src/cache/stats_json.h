#pragma once

#include <string>

#include "objectcache/cache.h"

namespace objectcache::cache {

/// The figures as one JSON object; names are those of CacheStats, layer waits in nanoseconds.
[[nodiscard]] std::string stats_json(const CacheStats& stats);

}  // namespace objectcache::cache
