#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/c_api_glue.h"

namespace {

using namespace objectcache::c_api;  // NOLINT: the glue of this API, and nothing else.
using objectcache::ChunkKey;
using objectcache::Error;
using objectcache::ErrorCode;
using objectcache::fail;
using objectcache::Result;
using objectcache::TimePoint;
using objectcache::UnitKey;

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

}  // namespace

extern "C" {

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
