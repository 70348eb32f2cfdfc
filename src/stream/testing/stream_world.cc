#include "stream/testing/stream_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "digest/crc32c.h"
#include "format/chunk_header.h"
#include "format/example_namespace.h"

namespace objectcache::stream {
namespace {

constexpr std::byte kCanary{0xc5};
constexpr std::size_t kCanaryBytes = 8;

std::shared_ptr<const ChunkSource> make_source(const WorldOptions& options) {
  NamespaceSpec spec = format::example_namespace();
  spec.layers = options.layers;
  spec.bytes_per_token = options.bytes_per_token;
  spec.engine_block_tokens = 1;
  spec.unit_tokens = options.unit_tokens;
  spec.chunk_tokens = options.unit_tokens * options.units;
  spec.object_layout = options.layout;
  const NamespaceDigest name = namespace_digest(spec).value();
  return std::make_shared<ChunkSource>(
      ChunkSource{.layout = format::ChunkLayout::create(spec).value(),
                  .names = format::ObjectNames::create("p", "default", name).value(),
                  .name = name,
                  .shard = {}});
}

std::vector<std::byte> random_bytes(Random& random, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (auto& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

}  // namespace

// ---------------------------------------------------------------- TestDestination

TestDestination::TestDestination(const format::ChunkLayout& layout, std::uint32_t chunks,
                                 std::uint32_t last_tokens, Kind kind, Random& random)
    : kind_(kind), chunks_(chunks) {
  if (last_tokens == 0) last_tokens = layout.chunk_tokens();
  std::size_t end = kCanaryBytes;
  const auto place = [&](std::size_t size) {
    places_.emplace_back(end, size);
    end += size + kCanaryBytes;
  };
  starts_.push_back(0);
  for (std::uint32_t l = 0; l < layout.layers(); ++l) {
    slice_bytes_.push_back(layout.slice_bytes(l));
    wanted_bytes_.push_back(layout.slice_bytes(l) / layout.chunk_tokens() * last_tokens);
    if (kind == Kind::kContiguous) {
      place(slice_bytes_[l] * (chunks - 1) + wanted_bytes_[l]);
      continue;
    }
    for (std::uint32_t c = 0; c < chunks; ++c) {
      std::uint64_t left = c + 1 == chunks ? wanted_bytes_[l] : slice_bytes_[l];
      while (left > 0) {
        const std::uint64_t part = random.below(4) == 0 ? left : 1 + random.below(left);
        place(part);
        left -= part;
      }
      starts_.push_back(static_cast<std::uint32_t>(places_.size()));
    }
  }
  arena_.assign(end, kCanary);
  for (const auto& [offset, size] : places_) {
    std::fill_n(arena_.begin() + static_cast<std::ptrdiff_t>(offset), size, std::byte{0});
  }
}

Segment TestDestination::segment(std::size_t index) const {
  return Segment(arena_).subspan(places_[index].first, places_[index].second);
}

Destination TestDestination::get() const {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < places_.size(); ++i) segments.push_back(segment(i));
  return kind_ == Kind::kContiguous ? Destination::contiguous(std::move(segments))
                                    : Destination::scattered(std::move(segments), starts_);
}

std::string TestDestination::canary_problem() const {
  std::size_t at = 0;
  for (std::size_t i = 0; i <= places_.size(); ++i) {
    const std::size_t end = i < places_.size() ? places_[i].first : arena_.size();
    for (; at < end; ++at) {
      if (arena_[at] != kCanary) return fmt::format("canary before segment {} is broken", i);
    }
    if (i < places_.size()) at += places_[i].second;
  }
  return {};
}

std::string TestDestination::problem(std::uint32_t layer, std::uint32_t chunk,
                                     const std::vector<std::byte>& expected) const {
  const std::uint64_t wanted = chunk + 1 == chunks_ ? wanted_bytes_[layer] : slice_bytes_[layer];
  std::vector<std::byte> found;
  if (kind_ == Kind::kContiguous) {
    const Segment part = segment(layer).subspan(slice_bytes_[layer] * chunk, wanted);
    found.assign(part.begin(), part.end());
  } else {
    const std::size_t slice = std::size_t{layer} * chunks_ + chunk;
    for (std::uint32_t s = starts_[slice]; s < starts_[slice + 1]; ++s) {
      const Segment part = segment(s);
      found.insert(found.end(), part.begin(), part.end());
    }
  }
  if (found.size() == wanted && std::equal(found.begin(), found.end(), expected.begin())) return {};
  return fmt::format("wrong bytes in layer {} of chunk {}", layer, chunk);
}

// ---------------------------------------------------------------- StreamWorld

StreamWorld::StreamWorld(const WorldOptions& options)
    : random(options.seed),
      store(options.seed + 1),
      memory({.capacity_bytes = options.memory_bytes}),
      source(make_source(options)),
      options_(options) {
  auto policy = std::make_unique<sched::EarliestDueFirst>(options.admission);
  admission = policy.get();
  point = std::make_unique<AdmissionPoint>(std::move(policy));
  const auto& layout = source->layout;
  slices_.resize(std::size_t{options.layers} * options.chunks);
  history_.resize(options.chunks);
  for (std::uint32_t c = 0; c < options.chunks; ++c) {
    ChunkKey key;
    for (auto& b : key.bytes) b = static_cast<std::byte>(random.next());
    keys.push_back(key);
    for (std::uint32_t l = 0; l < options.layers; ++l) {
      slices_[std::size_t{l} * options.chunks + c] = random_bytes(random, layout.slice_bytes(l));
    }
    publish(c, fmt::format("v{}", c));
  }
}

StreamWorld::~StreamWorld() = default;

std::string StreamWorld::key(std::uint32_t chunk, std::uint32_t layer) const {
  return source->names.object(keys[chunk], source->shard, layer);
}

void StreamWorld::republish(std::uint32_t chunk, std::string version, std::uint64_t content_seed) {
  Random content(content_seed);
  history_[chunk].emplace_back();
  for (std::uint32_t l = 0; l < options_.layers; ++l) {
    auto& now = slices_[std::size_t{l} * options_.chunks + chunk];
    history_[chunk].back().push_back(std::move(now));
    now = random_bytes(content, source->layout.slice_bytes(l));
  }
  publish(chunk, version);
}

void StreamWorld::publish(std::uint32_t chunk, const std::string& version) {
  const auto& layout = source->layout;
  format::ChunkHeader header;
  header.name = source->name;
  header.shard = source->shard;
  header.key = keys[chunk];
  if (chunk > 0) header.parent = keys[chunk - 1];
  header.unit_keys.resize(layout.units());
  for (auto& unit : header.unit_keys) unit.bytes.fill(std::byte{7});
  header.unit_keys.back().bytes = keys[chunk].bytes;
  for (std::uint32_t l = 0; l < layout.layers(); ++l) {
    for (std::uint32_t u = 0; u < layout.units(); ++u) {
      const auto bytes =
          ConstSegment(slice(l, chunk)).subspan(u * layout.unit_bytes(l), layout.unit_bytes(l));
      header.records.push_back({.stored_bytes = static_cast<std::uint32_t>(bytes.size()),
                                .crc32c = digest::crc32c(bytes)});
    }
  }
  std::vector<std::byte> head(layout.header_bytes());
  if (auto encoded = format::encode_header(layout, header, head); !encoded) {
    fmt::print(stderr, "{}\n", encoded.error().to_string());
    std::abort();
  }
  std::vector<std::byte> main = std::move(head);
  for (std::uint32_t l = 0; l < layout.layers(); ++l) {
    const auto& bytes = slice(l, chunk);
    if (l > 0 && layout.object_layout() == ObjectLayout::kLayer) {
      store.objects[key(chunk, l)] = {.bytes = bytes, .version = version};
    } else {
      main.insert(main.end(), bytes.begin(), bytes.end());
    }
  }
  store.objects[key(chunk)] = {.bytes = std::move(main), .version = version};
}

std::unique_ptr<TestRead> StreamWorld::open(const ReadOptions& options) {
  auto read = std::make_unique<TestRead>();
  read->chunks = options.chunks == 0 ? options_.chunks : options.chunks;
  read->last_tokens = options.last_tokens;
  read->destination = std::make_unique<TestDestination>(
      source->layout, read->chunks, options.last_tokens, options.destination, random);
  ReadRequest request;
  request.chunks.assign(keys.begin(),
                        keys.begin() + std::min<std::ptrdiff_t>(read->chunks, std::ssize(keys)));
  // More chunks than exist: keys of chunks that nobody published.
  while (request.chunks.size() < read->chunks) {
    ChunkKey key;
    for (auto& b : key.bytes) b = static_cast<std::byte>(random.next());
    request.chunks.push_back(key);
  }
  request.last_chunk_tokens = options.last_tokens;
  request.destination = read->destination->get();
  request.windows = options.windows;
  request.deadline = loop.now() + options.deadline;
  request.mode = options.mode;
  request.priority = options.priority;
  request.connections_max = options.connections;
  request.lookahead_bytes = options.lookahead_bytes;
  auto plan = plan::plan_read(read_job(source->layout, request),
                              {.connections = options.connections,
                               .bytes_per_s = options.store_bytes_per_s,
                               .first_byte = options.store_first_byte},
                              {.mode = plan_mode(options.mode), .request_bytes_min = 0});
  if (!plan) {
    read->open_error = plan.error();
    return read;
  }
  StreamEvents events;
  events.on_bad_object = [r = read.get()](std::uint32_t chunk, const Error& error) {
    r->bad_objects.emplace_back(chunk, error.code);
  };
  events.on_ended = [r = read.get()](const StreamStats&, const std::optional<StreamFailure>&) {
    ++r->ended_calls;
  };
  auto opened = open_stream({.loop = loop, .store = store, .admission = *point, .memory = memory},
                            options_.stream, source, std::move(request), *plan, std::move(events));
  if (opened) {
    read->stream.emplace(std::move(*opened));
  } else {
    read->open_error = opened.error();
  }
  return read;
}

std::string StreamWorld::chunk_problem(const TestRead& read, std::uint32_t chunk) const {
  const std::uint32_t ready = read.stream->ready_layers();
  std::string first_problem;
  for (std::uint32_t l = 0; l < ready && first_problem.empty(); ++l) {
    first_problem = read.destination->problem(l, chunk, slice(l, chunk));
  }
  if (first_problem.empty()) return {};
  for (const auto& version : history_[chunk]) {
    bool matches = true;
    for (std::uint32_t l = 0; l < ready && matches; ++l) {
      matches = read.destination->problem(l, chunk, version[l]).empty();
    }
    if (matches) return {};
  }
  return first_problem;
}

std::string StreamWorld::problem(const TestRead& read) const {
  if (auto canary = read.destination->canary_problem(); !canary.empty()) return canary;
  if (read.stream->ready_layers() == 0) return {};
  for (std::uint32_t c = 0; c < read.chunks; ++c) {
    if (auto wrong = chunk_problem(read, c); !wrong.empty()) return wrong;
  }
  return {};
}

bool StreamWorld::run_to_end(TestRead& read) {
  const TimePoint limit = loop.now() + std::chrono::hours(1);
  loop.run_ready();
  while (!read.stream->ended() && loop.now() < limit) {
    loop.run_for(std::chrono::microseconds(100));
  }
  return read.stream->ended();
}

}  // namespace objectcache::stream
