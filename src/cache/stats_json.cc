#include "cache/stats_json.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

namespace objectcache::cache {

std::string stats_json(const CacheStats& stats) {
  const std::pair<std::string_view, std::uint64_t> figures[] = {
      {"bytes_read", stats.bytes_read},
      {"bytes_written", stats.bytes_written},
      {"requests_get", stats.requests_get},
      {"requests_head", stats.requests_head},
      {"requests_put", stats.requests_put},
      {"requests_list", stats.requests_list},
      {"requests_delete", stats.requests_delete},
      {"retries", stats.retries},
      {"hedges", stats.hedges},
      {"hedge_bytes", stats.hedge_bytes},
      {"corrupt_found", stats.corrupt_found},
      {"streams_opened", stats.streams_opened},
      {"streams_failed", stats.streams_failed},
      {"chunks_published", stats.chunks_published},
      {"chunks_already_present", stats.chunks_already_present},
      {"chunks_dropped", stats.chunks_dropped},
  };
  std::string out = "{";
  for (const auto& [name, value] : figures) {
    fmt::format_to(std::back_inserter(out), "\"{}\":{},", name, value);
  }
  out += "\"layer_wait_total_ns\":[";
  for (std::size_t i = 0; i < stats.layer_wait_total.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",",
                   stats.layer_wait_total[i].count());
  }
  out += "],\"errors\":{";
  bool first = true;
  for (const auto& [name, count] : stats.errors) {
    fmt::format_to(std::back_inserter(out), "{}\"{}\":{}", first ? "" : ",", name, count);
    first = false;
  }
  out += "}}";
  return out;
}

}  // namespace objectcache::cache
