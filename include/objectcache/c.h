#ifndef OBJECTCACHE_C_H_
#define OBJECTCACHE_C_H_

/* ObjectCache for C and for whatever can call C.
 *
 * Errors: functions that can fail return 0 or an error code (the numbers of objectcache/error.h,
 * which never change their meaning) and fill *error, which may be NULL. A miss is not an error.
 * Handles: opaque, made by *_open and ended by *_close. Every function accepts a NULL handle: it
 * fails with OC_INVALID_ARGUMENT, returns 0, or does nothing. Handles may be closed in any order;
 * what hangs on a closed cache fails with OC_CANCELLED.
 * Threads: every function may be called from any thread, also at once on one handle; only *_close
 * must not run beside another call on the same handle.
 * Times: timeout_ms counts from the call; 0 only looks. Negative ones are refused.
 * Memory: pointers passed in are used during the call only, but for the destination of a stream,
 * which is written until the stream has ended. No function returns memory to be freed.
 */

#include <stddef.h>
#include <stdint.h>

#if defined(OBJECTCACHE_STATIC)
#define OC_EXPORT
#else
#define OC_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define OC_NOEXCEPT noexcept
extern "C" {
#else
#define OC_NOEXCEPT
#endif

enum {
  OC_OK = 0,
  OC_INVALID_ARGUMENT = 1,
  OC_NOT_FOUND = 2,
  OC_PERMISSION_DENIED = 3,
  OC_CORRUPT = 4,
  OC_INCOMPATIBLE = 5,
  OC_CONFLICT = 6,
  OC_UNAVAILABLE = 7,
  OC_THROTTLED = 8,
  OC_DEADLINE_EXCEEDED = 9,
  OC_CANCELLED = 10,
  OC_LIMIT_EXCEEDED = 11,
  OC_OUT_OF_SPACE = 12,
  OC_UNSUPPORTED = 13,
  OC_INTERNAL = 14
};

typedef struct oc_error {
  int32_t code;       /* OC_OK after a success. */
  int32_t retryable;  /* 1: the same call may succeed later. */
  char message[1016]; /* One line, NUL-terminated, cut if need be. */
} oc_error;

typedef struct oc_cache oc_cache;
typedef struct oc_namespace oc_namespace;
typedef struct oc_stream oc_stream;
typedef struct oc_writer oc_writer;

/* Names a unit or a chunk and everything before it. */
typedef struct oc_key {
  uint8_t bytes[32];
} oc_key;

typedef struct oc_segment {
  void* data;
  size_t size;
} oc_segment;

typedef struct oc_const_segment {
  const void* data;
  size_t size;
} oc_const_segment;

/* "unavailable" for OC_UNAVAILABLE and so on; "ok" for 0; "unknown" for other numbers. */
OC_EXPORT const char* oc_error_name(int32_t code) OC_NOEXCEPT;

/* ---------------------------------------------------------------- cache */

/* Fill with oc_cache_options_init() first: it sets struct_size and every default. */
typedef struct oc_cache_options {
  size_t struct_size;
  const char* tenant; /* NULL: "default". */
  uint64_t read_memory_bytes;
  uint64_t write_memory_bytes;
  uint32_t streams_max;
  uint32_t requests_in_flight_max;
  uint32_t stream_connections_max;
  uint32_t writes_in_flight_max;
  uint32_t match_probes_max;
  uint32_t match_cache_entries_max;
  uint32_t negative_cache_ttl_ms;
  uint32_t reactor_threads;
  int32_t delete_bad_objects;
  /* What a store may draw on, as "NAME=value" and ended by NULL (so `environ` fits). NULL: nothing;
   * the library reads no environment by itself. */
  const char* const* environment;
  const char* home_directory; /* NULL: none. */
} oc_cache_options;

OC_EXPORT void oc_cache_options_init(oc_cache_options* options) OC_NOEXCEPT;
/* Opens the store at `url` without contacting it. options may be NULL. */
OC_EXPORT int32_t oc_cache_open(const char* url, const oc_cache_options* options, oc_cache** out,
                                oc_error* error) OC_NOEXCEPT;
/* Cancels what is running and waits for it, bounded by the store's own deadlines. */
OC_EXPORT void oc_cache_close(oc_cache* cache) OC_NOEXCEPT;
/* Figures since the cache was opened, as JSON text. Writes at most `capacity` bytes, the NUL
 * included, and returns the length of the whole text (like snprintf). */
OC_EXPORT size_t oc_cache_stats_json(oc_cache* cache, char* buffer, size_t capacity) OC_NOEXCEPT;

/* ---------------------------------------------------------------- namespace and keys */

typedef struct oc_shard {
  uint16_t tp_rank;
  uint16_t tp_size;
  uint16_t pp_rank;
  uint16_t pp_size;
} oc_shard;

/* `json`: a namespace file (docs/formats/namespace.md). shard may be NULL: the only one. */
OC_EXPORT int32_t oc_namespace_open(oc_cache* cache, const char* json, size_t json_bytes,
                                    const oc_shard* shard, oc_namespace** out,
                                    oc_error* error) OC_NOEXCEPT;
OC_EXPORT void oc_namespace_close(oc_namespace* space) OC_NOEXCEPT;
OC_EXPORT uint32_t oc_namespace_layers(const oc_namespace* space) OC_NOEXCEPT;
OC_EXPORT uint32_t oc_namespace_unit_tokens(const oc_namespace* space) OC_NOEXCEPT;
OC_EXPORT uint32_t oc_namespace_chunk_tokens(const oc_namespace* space) OC_NOEXCEPT;
/* Bytes of one layer of one chunk; 0 for a layer that does not exist. */
OC_EXPORT uint64_t oc_namespace_slice_bytes(const oc_namespace* space, uint32_t layer) OC_NOEXCEPT;

/* The keys of all full units of a prompt. *count: how many there are. With too small a capacity
 * nothing is written and OC_LIMIT_EXCEEDED is returned, *count being set all the same. */
OC_EXPORT int32_t oc_unit_keys(const oc_namespace* space, const char* salt, size_t salt_bytes,
                               const uint32_t* tokens, size_t token_count, oc_key* keys,
                               size_t capacity, size_t* count, oc_error* error) OC_NOEXCEPT;
/* The same from the engine's chained hashes of its full blocks, hash_bytes each, one behind the
 * other; for namespaces whose hash_algorithm is the engine's. */
OC_EXPORT int32_t oc_engine_unit_keys(const oc_namespace* space, const char* salt,
                                      size_t salt_bytes, const void* hashes, size_t hash_bytes,
                                      size_t hash_count, oc_key* keys, size_t capacity,
                                      size_t* count, oc_error* error) OC_NOEXCEPT;
/* The keys of all full chunks that these units make up; capacity and count as above. */
OC_EXPORT int32_t oc_chunk_keys(const oc_namespace* space, const oc_key* units, size_t unit_count,
                                oc_key* chunks, size_t capacity, size_t* count,
                                oc_error* error) OC_NOEXCEPT;

/* ---------------------------------------------------------------- match, prove, forget */

/* How many leading chunks are probably stored: a hint. */
OC_EXPORT int32_t oc_match(oc_namespace* space, const oc_key* chunks, size_t chunk_count,
                           int64_t timeout_ms, uint32_t* matched, oc_error* error) OC_NOEXCEPT;
/* How many leading chunks have a header that was fetched and checked. */
OC_EXPORT int32_t oc_prove(oc_namespace* space, const oc_key* chunks, size_t chunk_count,
                           int64_t timeout_ms, uint32_t* proven, oc_error* error) OC_NOEXCEPT;
OC_EXPORT void oc_forget(oc_namespace* space, const oc_key* chunks, size_t chunk_count) OC_NOEXCEPT;

/* ---------------------------------------------------------------- reading */

enum {
  OC_READ_PLANNED = 0,
  OC_READ_CHUNKWISE = 1,
  OC_READ_LAYERWISE = 2,
  OC_READ_PUBLISHED = 3,
  OC_READ_WHOLE_OBJECTS = 4
};
enum { OC_PRIORITY_INTERACTIVE = 0, OC_PRIORITY_NORMAL = 1, OC_PRIORITY_BACKGROUND = 2 };

/* Fill with oc_read_request_init() first. */
typedef struct oc_read_request {
  size_t struct_size;
  const oc_key* chunks; /* In prefix order. */
  size_t chunk_count;
  uint32_t last_chunk_tokens; /* Leading tokens wanted of the last chunk; 0: all. */
  /* Where the KV goes. slice_starts NULL: one segment a layer, slice i at i * slice_bytes(layer).
   * Else the slice of (layer l, chunk i) of n fills segments[slice_starts[l * n + i]] up to
   * segments[slice_starts[l * n + i + 1]], slice_starts having layers * n + 1 entries. */
  const oc_segment* segments;
  size_t segment_count;
  const uint32_t* slice_starts;
  size_t slice_start_count;
  const uint64_t* windows_ns; /* Compute time of each layer; NULL: unknown. */
  size_t window_count;
  int64_t timeout_ms; /* The stream fails with OC_DEADLINE_EXCEEDED then. > 0. */
  uint32_t mode;
  uint32_t priority;
  uint32_t connections_max; /* 0: the cache's default. */
  uint64_t lookahead_bytes; /* 0: derived. */
} oc_read_request;

OC_EXPORT void oc_read_request_init(oc_read_request* request) OC_NOEXCEPT;
/* Starts a read and returns at once. */
OC_EXPORT int32_t oc_stream_open(oc_namespace* space, const oc_read_request* request,
                                 oc_stream** out, oc_error* error) OC_NOEXCEPT;
/* Waits until layers 0 to `layer` are in place. OC_DEADLINE_EXCEEDED while the stream goes on means
 * "not yet"; any other error is the stream's end. */
OC_EXPORT int32_t oc_stream_wait(oc_stream* stream, uint32_t layer, int64_t timeout_ms,
                                 oc_error* error) OC_NOEXCEPT;
OC_EXPORT uint32_t oc_stream_ready_layers(const oc_stream* stream) OC_NOEXCEPT;
/* 1: nothing will be written to the destination any more. NULL: 1. */
OC_EXPORT int32_t oc_stream_ended(const oc_stream* stream) OC_NOEXCEPT;
/* 0 while the stream has not failed, else the code of its failure. *chunk: the first chunk known to
 * be missing or bad, or -1. */
OC_EXPORT int32_t oc_stream_failure(const oc_stream* stream, int64_t* chunk,
                                    oc_error* error) OC_NOEXCEPT;
/* Readable after each change; owned by the stream. NULL: -1. */
OC_EXPORT int oc_stream_eventfd(const oc_stream* stream) OC_NOEXCEPT;
/* Asks the stream to end and returns at once. */
OC_EXPORT void oc_stream_cancel(oc_stream* stream) OC_NOEXCEPT;
OC_EXPORT int32_t oc_stream_cancel_and_wait(oc_stream* stream, int64_t timeout_ms,
                                            oc_error* error) OC_NOEXCEPT;
/* Cancels and waits until nothing writes to the destination any more. */
OC_EXPORT void oc_stream_close(oc_stream* stream) OC_NOEXCEPT;

/* ---------------------------------------------------------------- writing */

typedef struct oc_write_summary {
  uint32_t published;
  uint32_t already_present;
  uint32_t dropped;
  uint32_t abandoned;
  uint32_t failed;
  uint64_t bytes_published;
} oc_write_summary;

/* Starts a write of the chunks that `units` (all units of the prefix, in order) make up, from
 * first_chunk on. */
OC_EXPORT int32_t oc_writer_open(oc_namespace* space, const oc_key* units, size_t unit_count,
                                 uint32_t first_chunk, oc_writer** out,
                                 oc_error* error) OC_NOEXCEPT;
/* 0: the chunk is stored already or was dropped, it need not be copied. */
OC_EXPORT int32_t oc_writer_wants(const oc_writer* writer, uint32_t chunk) OC_NOEXCEPT;
/* Copies one layer of one chunk; never waits for the store. */
OC_EXPORT int32_t oc_writer_write_slice(oc_writer* writer, uint32_t layer, uint32_t chunk,
                                        const oc_const_segment* segments, size_t segment_count,
                                        oc_error* error) OC_NOEXCEPT;
OC_EXPORT int32_t oc_writer_write_unit_slice(oc_writer* writer, uint32_t layer, uint32_t chunk,
                                             uint32_t unit, const oc_const_segment* segments,
                                             size_t segment_count, oc_error* error) OC_NOEXCEPT;
/* Abandons incomplete chunks and waits for the complete ones. A chunk that the store refused is
 * counted in *summary and described in *error, while the call returns OC_OK. */
OC_EXPORT int32_t oc_writer_finish(oc_writer* writer, int64_t timeout_ms, oc_write_summary* summary,
                                   oc_error* error) OC_NOEXCEPT;
/* Publishes nothing more than what is being sent already. */
OC_EXPORT void oc_writer_abandon(oc_writer* writer) OC_NOEXCEPT;
/* Abandons what is incomplete; complete chunks go on in the background. */
OC_EXPORT void oc_writer_close(oc_writer* writer) OC_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* OBJECTCACHE_C_H_ */
