// The child of the memory and cpu benches: one layer stream over the chunks of a made-up prefix,
// read as a user of the library reads.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/bench_space.h"
#include "cli/bench/benches.h"
#include "cli/bench/read_workload.h"

namespace objectcache::cli {
namespace {

constexpr std::chrono::minutes kPatience{10};

/// Anonymous memory with all its pages in place.
class Area {
 public:
  explicit Area(std::uint64_t size) : size_(size) {
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at != MAP_FAILED) data_ = static_cast<std::byte*>(at);
  }
  ~Area() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;
  [[nodiscard]] bool is_there() const { return data_ != nullptr; }
  [[nodiscard]] Segment part(std::uint64_t offset, std::uint64_t size) const {
    return {data_ + offset, size};
  }

 private:
  std::uint64_t size_;
  std::byte* data_ = nullptr;
};

/// A field of /proc/self/status in bytes; 0 if it is not there.
std::uint64_t status_bytes(std::string_view field) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field) && line[field.size()] == ':') {
      return std::stoull(line.substr(field.size() + 1)) * 1024;
    }
  }
  return 0;
}

Result<void> read_once(CacheNamespace& space, const BenchSpace& made, const Area& area,
                       std::uint32_t connections) {
  ReadRequest request;
  request.chunks = made.chunks();
  std::vector<Segment> layers;
  for (std::uint32_t i = 0; i < made.spec().layers; ++i) {
    layers.push_back(area.part(i * made.layer_bytes(), made.layer_bytes()));
  }
  request.destination = Destination::contiguous(std::move(layers));
  request.deadline = std::chrono::steady_clock::now() + kPatience;
  request.connections_max = connections;
  const TimePoint deadline = request.deadline;
  auto stream = space.open_stream(std::move(request));
  if (!stream) return std::unexpected(std::move(stream.error()));
  return stream->wait(made.spec().layers - 1, deadline);
}

Result<void> read_all(const StreamReadClientOptions& options) {
  auto made = BenchSpace::create({.layers = options.layers, .chunks = options.chunks});
  if (!made) return std::unexpected(std::move(made.error()));
  auto cache = Cache::open(options.url, {.environment = options.common.environment});
  if (!cache) return std::unexpected(std::move(cache.error()));
  auto space = (*cache)->open_namespace(made->spec());
  if (!space) return std::unexpected(std::move(space.error()));
  const Area area(made->payload_bytes());
  if (!area.is_there()) {
    return fail(ErrorCode::kLimitExceeded, "no memory for the destination", "bench");
  }
  std::ofstream("/proc/self/clear_refs") << "5";  // Forgets the high-water mark so far.
  const std::uint64_t rss_before = status_bytes("VmRSS");
  const ClientMeter meter;
  for (std::uint32_t i = 0; i < options.repeat; ++i) {
    if (auto ok = read_once(*space, *made, area, options.connections); !ok) return ok;
  }
  const ClientResult result = meter.read(made->payload_bytes() * options.repeat);
  const std::uint64_t rss_peak = status_bytes("VmHWM");
  fmt::print(
      "{{\"bytes\": {}, \"seconds\": {:.6f}, \"cpu_s\": {:.6f}, \"rss_before_bytes\": {}, "
      "\"rss_peak_bytes\": {}}}\n",
      result.bytes, result.seconds, result.cpu_s, rss_before, rss_peak);
  return {};
}

}  // namespace

ExitCode run_stream_read_client(const StreamReadClientOptions& options, Console& console) {
  if (auto ok = read_all(options); !ok) return console.error(ok.error());
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
