// URLs of stores, as people and configuration files write them: total, and what was read can be
// written and read again. Every kind of value is parsed from the same bytes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/parameters.h"
#include "base/url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace objectcache;  // NOLINT
  const std::string_view text(size == 0 ? "" : reinterpret_cast<const char*>(data), size);
  const auto duration = parse_duration(text);
  if (duration && duration->count() < 0) std::abort();
  static_cast<void>(parse_size(text));
  const auto rate = parse_rate(text);
  if (rate && !(*rate > 0 && *rate <= 1e18)) std::abort();
  const auto url = parse_url(text);
  if (!url) return 0;
  const auto again = parse_url(url->display());
  if (!again || again->scheme != url->scheme || again->authority != url->authority ||
      again->path != url->path) {
    std::abort();
  }
  Duration timeout{};
  std::uint64_t bytes = 0;
  double bytes_per_second = 0;
  bool flag = false;
  unsigned count = 0;
  ParameterReader in(url->parameters);
  in.duration("timeout", timeout);
  in.size("size", bytes);
  in.rate("rate", bytes_per_second);
  in.flag("flag", flag);
  in.count("count", 1, 64, count);
  const auto done = in.finish();
  if (done && count > 64) std::abort();
  if (!done && done.error().message.size() > 4096) std::abort();
  return 0;
}
