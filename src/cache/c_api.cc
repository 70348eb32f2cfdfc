#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/stats_json.h"
#include "objectcache/c.h"
#include "objectcache/cache.h"
#include "objectcache/key_chain.h"

// The handles of C are the handles of C++ in boxes. Every function that can fail goes through
// guarded(), which lets no exception cross.

struct oc_cache {
  std::unique_ptr<objectcache::Cache> cache;
};
struct oc_namespace {
  objectcache::CacheNamespace space;
};
struct oc_stream {
  objectcache::LayerStream stream;
};
struct oc_writer {
  objectcache::PrefixWriter writer;
};

namespace {

using objectcache::ChunkKey;
using objectcache::Error;
using objectcache::ErrorCode;
using objectcache::fail;
using objectcache::Result;
using objectcache::TimePoint;
using objectcache::UnitKey;

constexpr std::int64_t kTimeoutMsMax = 1000LL * 60 * 60 * 24 * 365;  ///< Longer ones mean this.

static_assert(sizeof(oc_key) == sizeof(ChunkKey) && sizeof(oc_key) == sizeof(UnitKey));
static_assert(OC_INVALID_ARGUMENT == static_cast<int>(ErrorCode::kInvalidArgument) &&
              OC_NOT_FOUND == static_cast<int>(ErrorCode::kNotFound) &&
              OC_PERMISSION_DENIED == static_cast<int>(ErrorCode::kPermissionDenied) &&
              OC_CORRUPT == static_cast<int>(ErrorCode::kCorrupt) &&
              OC_INCOMPATIBLE == static_cast<int>(ErrorCode::kIncompatible) &&
              OC_CONFLICT == static_cast<int>(ErrorCode::kConflict) &&
              OC_UNAVAILABLE == static_cast<int>(ErrorCode::kUnavailable) &&
              OC_THROTTLED == static_cast<int>(ErrorCode::kThrottled) &&
              OC_DEADLINE_EXCEEDED == static_cast<int>(ErrorCode::kDeadlineExceeded) &&
              OC_CANCELLED == static_cast<int>(ErrorCode::kCancelled) &&
              OC_LIMIT_EXCEEDED == static_cast<int>(ErrorCode::kLimitExceeded) &&
              OC_OUT_OF_SPACE == static_cast<int>(ErrorCode::kOutOfSpace) &&
              OC_UNSUPPORTED == static_cast<int>(ErrorCode::kUnsupported) &&
              OC_INTERNAL == static_cast<int>(ErrorCode::kInternal));

std::int32_t tell(oc_error* out, std::int32_t code, bool retryable,
                  std::string_view text) noexcept {
  if (out != nullptr) {
    out->code = code;
    out->retryable = retryable ? 1 : 0;
    const std::size_t length = std::min(text.size(), sizeof out->message - 1);
    if (length > 0) std::memcpy(out->message, text.data(), length);
    out->message[length] = '\0';
  }
  return code;
}

std::int32_t tell(oc_error* out, const Error& error) {
  return tell(out, static_cast<std::int32_t>(error.code), objectcache::is_retryable(error.code),
              error.to_string());
}

/// Runs `body`, which gives a Result<void>, and turns whatever comes of it into a code.
template <class Body>
std::int32_t guarded(oc_error* error, Body body) noexcept {
  try {
    const Result<void> result = body();
    if (result) return tell(error, OC_OK, false, {});
    return tell(error, result.error());
  } catch (const std::bad_alloc&) {
    return tell(error, OC_LIMIT_EXCEEDED, false, "out of memory");
  } catch (const std::exception& e) {
    return tell(error, OC_INTERNAL, false, e.what());
  } catch (...) {
    return tell(error, OC_INTERNAL, false, "unknown exception");
  }
}

std::unexpected<Error> missing(std::string_view what) {
  return fail(ErrorCode::kInvalidArgument, fmt::format("{} is NULL", what));
}

Result<TimePoint> deadline(std::int64_t timeout_ms) {
  if (timeout_ms < 0) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("timeout_ms is {}", timeout_ms));
  }
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(std::min(timeout_ms, kTimeoutMsMax));
}

template <class Key>
std::vector<Key> keys_from(const oc_key* keys, std::size_t count) {
  std::vector<Key> out(count);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(&out[i].bytes, keys[i].bytes, sizeof(Key));
  return out;
}

template <class Key>
Result<void> keys_to(const std::vector<Key>& from, oc_key* keys, std::size_t capacity,
                     std::size_t* count) {
  *count = from.size();
  if (from.size() > capacity) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{} keys do not fit into {}", from.size(), capacity));
  }
  if (from.empty()) return {};
  if (keys == nullptr) return missing("keys");
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::memcpy(keys[i].bytes, &from[i].bytes, sizeof(Key));
  }
  return {};
}

std::string_view text_of(const char* data, std::size_t size) {
  return data == nullptr ? std::string_view() : std::string_view(data, size);
}

objectcache::CacheOptions options_from(const oc_cache_options& in) {
  objectcache::CacheOptions out;
  if (in.tenant != nullptr) out.tenant = in.tenant;
  out.read_memory_bytes = in.read_memory_bytes;
  out.write_memory_bytes = in.write_memory_bytes;
  out.streams_max = in.streams_max;
  out.requests_in_flight_max = in.requests_in_flight_max;
  out.stream_connections_max = in.stream_connections_max;
  out.writes_in_flight_max = in.writes_in_flight_max;
  out.match_probes_max = in.match_probes_max;
  out.match_cache_entries_max = in.match_cache_entries_max;
  out.negative_cache_ttl = std::chrono::milliseconds(in.negative_cache_ttl_ms);
  out.reactor_threads = in.reactor_threads;
  out.delete_bad_objects = in.delete_bad_objects != 0;
  for (const char* const* each = in.environment; each != nullptr && *each != nullptr; ++each) {
    const std::string_view text = *each;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    out.environment.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  if (in.home_directory != nullptr) out.environment.home_directory = in.home_directory;
  return out;
}

Result<objectcache::ReadRequest> request_from(const oc_read_request& in) {
  const std::pair<const void*, std::size_t> lists[] = {{in.chunks, in.chunk_count},
                                                       {in.segments, in.segment_count},
                                                       {in.slice_starts, in.slice_start_count},
                                                       {in.windows_ns, in.window_count}};
  for (const auto& [list, count] : lists) {
    if (list == nullptr && count > 0) return missing("a list with entries");
  }
  if (in.mode > OC_READ_WHOLE_OBJECTS) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("mode {} does not exist", in.mode));
  }
  if (in.priority > OC_PRIORITY_BACKGROUND) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("priority {} does not exist", in.priority));
  }
  const auto until = deadline(in.timeout_ms);
  if (!until) return std::unexpected(until.error());
  objectcache::ReadRequest out;
  out.chunks = keys_from<ChunkKey>(in.chunks, in.chunk_count);
  out.last_chunk_tokens = in.last_chunk_tokens;
  std::vector<objectcache::Segment> segments;
  segments.reserve(in.segment_count);
  for (const oc_segment& segment : std::span(in.segments, in.segment_count)) {
    if (segment.data == nullptr && segment.size > 0) return missing("a segment's data");
    segments.emplace_back(static_cast<std::byte*>(segment.data), segment.size);
  }
  if (in.slice_starts == nullptr) {
    out.destination = objectcache::Destination::contiguous(std::move(segments));
  } else {
    out.destination = objectcache::Destination::scattered(
        std::move(segments), {in.slice_starts, in.slice_starts + in.slice_start_count});
  }
  for (const std::uint64_t ns : std::span(in.windows_ns, in.window_count)) {
    out.windows.emplace_back(static_cast<std::int64_t>(
        std::min(ns, static_cast<std::uint64_t>(kTimeoutMsMax) * 1'000'000)));
  }
  out.deadline = *until;
  out.mode = static_cast<objectcache::ReadMode>(in.mode);
  out.priority = static_cast<objectcache::Priority>(in.priority);
  out.connections_max = in.connections_max;
  out.lookahead_bytes = in.lookahead_bytes;
  return out;
}

Result<std::vector<objectcache::ConstSegment>> segments_from(const oc_const_segment* segments,
                                                             std::size_t count) {
  std::vector<objectcache::ConstSegment> out;
  if (segments == nullptr && count > 0) return missing("segments");
  out.reserve(count);
  for (const oc_const_segment& segment : std::span(segments, count)) {
    if (segment.data == nullptr && segment.size > 0) return missing("a segment's data");
    out.emplace_back(static_cast<const std::byte*>(segment.data), segment.size);
  }
  return out;
}

/// What oc_match and oc_prove have in common.
template <class Ask>
std::int32_t count_leading(oc_namespace* space, const oc_key* chunks, std::size_t chunk_count,
                           std::int64_t timeout_ms, std::uint32_t* count, oc_error* error,
                           Ask ask) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (space == nullptr) return missing("space");
    if (count == nullptr) return missing("the place of the answer");
    *count = 0;
    if (chunks == nullptr && chunk_count > 0) return missing("chunks");
    const auto until = deadline(timeout_ms);
    if (!until) return std::unexpected(until.error());
    const auto keys = keys_from<ChunkKey>(chunks, chunk_count);
    const auto found = ask(space->space, keys, *until);
    if (!found) return std::unexpected(found.error());
    *count = found->chunks;
    return {};
  });
}

}  // namespace

extern "C" {

const char* oc_error_name(int32_t code) noexcept {
  if (code == OC_OK) return "ok";
  if (code < 0 || code > OC_INTERNAL) return "unknown";
  return objectcache::error_code_name(static_cast<ErrorCode>(code)).data();
}

// ---------------------------------------------------------------- cache

void oc_cache_options_init(oc_cache_options* options) noexcept {
  if (options == nullptr) return;
  try {
    const objectcache::CacheOptions defaults;
    *options = oc_cache_options{};
    options->struct_size = sizeof *options;
    options->read_memory_bytes = defaults.read_memory_bytes;
    options->write_memory_bytes = defaults.write_memory_bytes;
    options->streams_max = defaults.streams_max;
    options->requests_in_flight_max = defaults.requests_in_flight_max;
    options->stream_connections_max = defaults.stream_connections_max;
    options->writes_in_flight_max = defaults.writes_in_flight_max;
    options->match_probes_max = defaults.match_probes_max;
    options->match_cache_entries_max = defaults.match_cache_entries_max;
    options->negative_cache_ttl_ms =
        static_cast<std::uint32_t>(defaults.negative_cache_ttl.count());
    options->reactor_threads = defaults.reactor_threads;
    options->delete_bad_objects = defaults.delete_bad_objects ? 1 : 0;
  } catch (...) {
    options->struct_size = 0;  // oc_cache_open refuses it.
  }
}

int32_t oc_cache_open(const char* url, const oc_cache_options* options, oc_cache** out,
                      oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (out == nullptr) return missing("out");
    *out = nullptr;
    if (url == nullptr) return missing("url");
    objectcache::CacheOptions given;
    if (options != nullptr) {
      if (options->struct_size != sizeof *options) {
        return fail(ErrorCode::kInvalidArgument,
                    "fill the options with oc_cache_options_init(); this library has another size");
      }
      given = options_from(*options);
    }
    auto cache = objectcache::Cache::open(url, std::move(given));
    if (!cache) return std::unexpected(std::move(cache.error()));
    *out = new oc_cache{std::move(*cache)};
    return {};
  });
}

void oc_cache_close(oc_cache* cache) noexcept { delete cache; }

size_t oc_cache_stats_json(oc_cache* cache, char* buffer, size_t capacity) noexcept {
  if (buffer != nullptr && capacity > 0) *buffer = '\0';
  if (cache == nullptr) return 0;
  try {
    const std::string text = objectcache::cache::stats_json(cache->cache->stats());
    if (buffer != nullptr && capacity > 0) {
      const std::size_t length = std::min(text.size(), capacity - 1);
      std::memcpy(buffer, text.data(), length);
      buffer[length] = '\0';
    }
    return text.size();
  } catch (...) {
    return 0;
  }
}

// ---------------------------------------------------------------- namespace and keys

int32_t oc_namespace_open(oc_cache* cache, const char* json, size_t json_bytes,
                          const oc_shard* shard, oc_namespace** out, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (out == nullptr) return missing("out");
    *out = nullptr;
    if (cache == nullptr) return missing("cache");
    if (json == nullptr) return missing("json");
    auto spec = objectcache::parse_namespace({json, json_bytes});
    if (!spec) return std::unexpected(std::move(spec.error()));
    objectcache::Shard which;
    if (shard != nullptr) {
      which = {.tp_rank = shard->tp_rank,
               .tp_size = shard->tp_size,
               .pp_rank = shard->pp_rank,
               .pp_size = shard->pp_size};
    }
    auto space = cache->cache->open_namespace(std::move(*spec), which);
    if (!space) return std::unexpected(std::move(space.error()));
    *out = new oc_namespace{std::move(*space)};
    return {};
  });
}

void oc_namespace_close(oc_namespace* space) noexcept { delete space; }

uint32_t oc_namespace_layers(const oc_namespace* space) noexcept {
  return space == nullptr ? 0 : space->space.spec().layers;
}
uint32_t oc_namespace_unit_tokens(const oc_namespace* space) noexcept {
  return space == nullptr ? 0 : space->space.spec().unit_tokens;
}
uint32_t oc_namespace_chunk_tokens(const oc_namespace* space) noexcept {
  return space == nullptr ? 0 : space->space.spec().chunk_tokens;
}
uint64_t oc_namespace_slice_bytes(const oc_namespace* space, uint32_t layer) noexcept {
  if (space == nullptr || layer >= space->space.spec().layers) return 0;
  return space->space.spec().slice_bytes(layer);
}

int32_t oc_unit_keys(const oc_namespace* space, const char* salt, size_t salt_bytes,
                     const uint32_t* tokens, size_t token_count, oc_key* keys, size_t capacity,
                     size_t* count, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (count == nullptr) return missing("count");
    *count = 0;
    if (space == nullptr) return missing("space");
    if (tokens == nullptr && token_count > 0) return missing("tokens");
    auto made = objectcache::unit_keys(space->space.spec(), text_of(salt, salt_bytes),
                                       {tokens, token_count});
    if (!made) return std::unexpected(std::move(made.error()));
    return keys_to(*made, keys, capacity, count);
  });
}

int32_t oc_engine_unit_keys(const oc_namespace* space, const char* salt, size_t salt_bytes,
                            const void* hashes, size_t hash_bytes, size_t hash_count, oc_key* keys,
                            size_t capacity, size_t* count, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (count == nullptr) return missing("count");
    *count = 0;
    if (space == nullptr) return missing("space");
    if (hashes == nullptr && hash_count > 0) return missing("hashes");
    std::vector<objectcache::EngineHash> list;
    list.reserve(hash_count);
    for (std::size_t i = 0; i < hash_count; ++i) {
      list.emplace_back(static_cast<const std::byte*>(hashes) + i * hash_bytes, hash_bytes);
    }
    auto made = objectcache::engine_unit_keys(space->space.spec(), text_of(salt, salt_bytes), list);
    if (!made) return std::unexpected(std::move(made.error()));
    return keys_to(*made, keys, capacity, count);
  });
}

int32_t oc_chunk_keys(const oc_namespace* space, const oc_key* units, size_t unit_count,
                      oc_key* chunks, size_t capacity, size_t* count, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (count == nullptr) return missing("count");
    *count = 0;
    if (space == nullptr) return missing("space");
    if (units == nullptr && unit_count > 0) return missing("units");
    return keys_to(objectcache::chunk_keys(keys_from<UnitKey>(units, unit_count),
                                           space->space.spec().units_per_chunk()),
                   chunks, capacity, count);
  });
}

// ---------------------------------------------------------------- match, prove, forget

int32_t oc_match(oc_namespace* space, const oc_key* chunks, size_t chunk_count, int64_t timeout_ms,
                 uint32_t* matched, oc_error* error) noexcept {
  return count_leading(
      space, chunks, chunk_count, timeout_ms, matched, error,
      [](auto& in, const auto& keys, TimePoint until) { return in.match(keys, until); });
}

int32_t oc_prove(oc_namespace* space, const oc_key* chunks, size_t chunk_count, int64_t timeout_ms,
                 uint32_t* proven, oc_error* error) noexcept {
  return count_leading(
      space, chunks, chunk_count, timeout_ms, proven, error,
      [](auto& in, const auto& keys, TimePoint until) { return in.prove(keys, until); });
}

void oc_forget(oc_namespace* space, const oc_key* chunks, size_t chunk_count) noexcept {
  static_cast<void>(guarded(nullptr, [&]() -> Result<void> {
    if (space != nullptr && chunks != nullptr) {
      space->space.forget(keys_from<ChunkKey>(chunks, chunk_count));
    }
    return {};
  }));
}

// ---------------------------------------------------------------- reading

void oc_read_request_init(oc_read_request* request) noexcept {
  if (request == nullptr) return;
  *request = oc_read_request{};
  request->struct_size = sizeof *request;
  request->priority = OC_PRIORITY_NORMAL;
}

int32_t oc_stream_open(oc_namespace* space, const oc_read_request* request, oc_stream** out,
                       oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (out == nullptr) return missing("out");
    *out = nullptr;
    if (space == nullptr) return missing("space");
    if (request == nullptr) return missing("request");
    if (request->struct_size != sizeof *request) {
      return fail(ErrorCode::kInvalidArgument,
                  "fill the request with oc_read_request_init(); this library has another size");
    }
    auto made = request_from(*request);
    if (!made) return std::unexpected(std::move(made.error()));
    auto stream = space->space.open_stream(std::move(*made));
    if (!stream) return std::unexpected(std::move(stream.error()));
    *out = new oc_stream{std::move(*stream)};
    return {};
  });
}

int32_t oc_stream_wait(oc_stream* stream, uint32_t layer, int64_t timeout_ms,
                       oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (stream == nullptr) return missing("stream");
    const auto until = deadline(timeout_ms);
    if (!until) return std::unexpected(until.error());
    return stream->stream.wait(layer, *until);
  });
}

uint32_t oc_stream_ready_layers(const oc_stream* stream) noexcept {
  return stream == nullptr ? 0 : stream->stream.ready_layers();
}

int32_t oc_stream_ended(const oc_stream* stream) noexcept {
  return stream == nullptr || stream->stream.ended() ? 1 : 0;
}

int32_t oc_stream_failure(const oc_stream* stream, int64_t* chunk, oc_error* error) noexcept {
  if (chunk != nullptr) *chunk = -1;
  return guarded(error, [&]() -> Result<void> {
    if (stream == nullptr) return missing("stream");
    auto failure = stream->stream.failure();
    if (!failure) return {};
    if (chunk != nullptr && failure->chunk) *chunk = *failure->chunk;
    return std::unexpected(std::move(failure->error));
  });
}

int oc_stream_eventfd(const oc_stream* stream) noexcept {
  return stream == nullptr ? -1 : stream->stream.event_fd();
}

void oc_stream_cancel(oc_stream* stream) noexcept {
  if (stream != nullptr) stream->stream.cancel();
}

int32_t oc_stream_cancel_and_wait(oc_stream* stream, int64_t timeout_ms, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (stream == nullptr) return missing("stream");
    const auto until = deadline(timeout_ms);
    if (!until) return std::unexpected(until.error());
    return stream->stream.cancel_and_wait(*until);
  });
}

void oc_stream_close(oc_stream* stream) noexcept { delete stream; }

// ---------------------------------------------------------------- writing

int32_t oc_writer_open(oc_namespace* space, const oc_key* units, size_t unit_count,
                       uint32_t first_chunk, oc_writer** out, oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (out == nullptr) return missing("out");
    *out = nullptr;
    if (space == nullptr) return missing("space");
    if (units == nullptr && unit_count > 0) return missing("units");
    auto writer = space->space.open_writer(keys_from<UnitKey>(units, unit_count), first_chunk);
    if (!writer) return std::unexpected(std::move(writer.error()));
    *out = new oc_writer{std::move(*writer)};
    return {};
  });
}

int32_t oc_writer_wants(const oc_writer* writer, uint32_t chunk) noexcept {
  return writer != nullptr && writer->writer.wants(chunk) ? 1 : 0;
}

int32_t oc_writer_write_slice(oc_writer* writer, uint32_t layer, uint32_t chunk,
                              const oc_const_segment* segments, size_t segment_count,
                              oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (writer == nullptr) return missing("writer");
    const auto list = segments_from(segments, segment_count);
    if (!list) return std::unexpected(list.error());
    return writer->writer.write_slice(layer, chunk, *list);
  });
}

int32_t oc_writer_write_unit_slice(oc_writer* writer, uint32_t layer, uint32_t chunk, uint32_t unit,
                                   const oc_const_segment* segments, size_t segment_count,
                                   oc_error* error) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (writer == nullptr) return missing("writer");
    const auto list = segments_from(segments, segment_count);
    if (!list) return std::unexpected(list.error());
    return writer->writer.write_unit_slice(layer, chunk, unit, *list);
  });
}

int32_t oc_writer_finish(oc_writer* writer, int64_t timeout_ms, oc_write_summary* summary,
                         oc_error* error) noexcept {
  if (summary != nullptr) *summary = oc_write_summary{};
  std::optional<Error> refused;
  const std::int32_t code = guarded(error, [&]() -> Result<void> {
    if (writer == nullptr) return missing("writer");
    const auto until = deadline(timeout_ms);
    if (!until) return std::unexpected(until.error());
    const auto written = writer->writer.finish(*until);
    if (!written) return std::unexpected(written.error());
    if (summary != nullptr) {
      summary->published = written->published;
      summary->already_present = written->already_present;
      summary->dropped = written->dropped;
      summary->abandoned = written->abandoned;
      summary->failed = written->failed;
      summary->bytes_published = written->bytes_published;
    }
    if (!written->first_error.empty()) refused = written->first_error.front();
    return {};
  });
  if (code == OC_OK && refused) {
    static_cast<void>(
        guarded(error, [&]() -> Result<void> { return std::unexpected(std::move(*refused)); }));
  }
  return code;
}

void oc_writer_abandon(oc_writer* writer) noexcept {
  if (writer != nullptr) writer->writer.abandon();
}

void oc_writer_close(oc_writer* writer) noexcept { delete writer; }

}  // extern "C"
