#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/types.h"
#include "store/s3/circuit_breaker.h"

namespace objectcache::store_s3 {

enum class Verb : std::uint8_t { kGet, kPut, kHead, kList, kDelete, kDeleteMany };
inline constexpr std::size_t kVerbs = 6;
/// "get", "put"...
[[nodiscard]] std::string_view verb_name(Verb verb);

inline constexpr std::size_t kErrorCodes = static_cast<std::size_t>(ErrorCode::kInternal) + 1;

/// What a store has done since it was opened; a copy.
struct S3Stats {
  std::array<std::uint64_t, kVerbs> operations{};   ///< Started by callers.
  std::array<std::uint64_t, kVerbs> requests{};     ///< Sent: with retries, hedges and probes.
  std::array<std::uint64_t, kErrorCodes> errors{};  ///< Operations that failed, by ErrorCode.
  std::uint64_t bytes_read = 0;                     ///< Of bodies that GETs delivered or copied.
  std::uint64_t bytes_written = 0;  ///< Of bodies that PUTs sent and the store confirmed.
  std::uint64_t retries = 0;
  std::uint64_t hedges = 0;
  std::uint64_t hedges_won = 0;  ///< Whose bytes were delivered.
  std::uint64_t hedged_bytes = 0;
  std::uint64_t throttled = 0;           ///< Answers that asked for fewer requests.
  std::uint64_t in_flight = 0;           ///< Requests on the wire now.
  double requests_per_second_limit = 0;  ///< 0: none now.

  struct Endpoint {
    std::string url;
    BreakerState breaker = BreakerState::kClosed;
    std::uint64_t times_opened = 0;
  };
  std::vector<Endpoint> endpoints;

  Duration first_byte_p50{};  ///< Zero while nothing was measured, as is the next.
  Duration first_byte_p99{};
  double bytes_per_second = 0;  ///< Read, over the last second.
  double bytes_per_second_peak = 0;
  std::int64_t clock_offset_s = 0;  ///< The server's clock minus ours, if it had to be learned.
  std::string region;               ///< The one that requests are signed for now.
};

/// The counters behind S3Stats. Any thread: each is on its own, so a copy is not one instant.
struct S3Counters {
  using Count = std::atomic<std::uint64_t>;
  std::array<Count, kVerbs> operations{};
  std::array<Count, kVerbs> requests{};
  std::array<Count, kErrorCodes> errors{};
  Count bytes_read{0};
  Count bytes_written{0};
  Count retries{0};
  Count hedges{0};
  Count hedges_won{0};
  Count hedged_bytes{0};
  Count throttled{0};
  Count in_flight{0};

  static void add(Count& count, std::uint64_t n = 1) {
    count.fetch_add(n, std::memory_order_relaxed);
  }
  void add_operation(Verb verb) { add(operations[static_cast<std::size_t>(verb)]); }
  void add_error(ErrorCode code) {
    if (static_cast<std::size_t>(code) < kErrorCodes) add(errors[static_cast<std::size_t>(code)]);
  }
  void copy_to(S3Stats& out) const;
};

}  // namespace objectcache::store_s3
