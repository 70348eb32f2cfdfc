/* Uses ObjectCache as a C program would. Exits with 1 at the first check that fails. */

#define _POSIX_C_SOURCE 200809L

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "objectcache/c.h"

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* Fails with the library's own words. */
#define CHECK_OK(call)                                                                \
  do {                                                                                \
    if ((call) != OC_OK) {                                                            \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, error.message);   \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

enum { kLayers = 3, kChunks = 5, kChunkTokens = 16, kUnitTokens = 8, kTokens = 85 };

static const char kNamespace[] =
    "{\"format_version\":1,\"model_architecture\":\"LlamaForCausalLM\","
    "\"model_fingerprint\":\"sha256:00\",\"adapter_id\":\"none\",\"adapter_revision\":\"none\","
    "\"kv_dtype\":\"bfloat16\",\"kv_quantization\":\"none\",\"kv_scales\":\"none\","
    "\"position_encoding\":\"rope\",\"attention_backend\":\"reference\","
    "\"element_order\":\"[token,2,kv_head,head_dim]\",\"instruction_set\":\"any\",\"layers\":3,"
    "\"bytes_per_token\":[64],\"engine_block_tokens\":4,\"unit_tokens\":8,\"chunk_tokens\":16,"
    "\"hash_algorithm\":\"sha256-chain\",\"hash_seed\":\"none\",\"codec\":\"none\","
    "\"cipher\":\"none\",\"object_layout\":\"chunk\"}";

static oc_error error;

static unsigned char byte_of(unsigned layer, unsigned chunk, size_t at) {
  return (unsigned char)(layer * 83 + chunk * 29 + at * 7);
}

static oc_namespace* open_namespace(oc_cache* cache) {
  oc_namespace* space = NULL;
  CHECK_OK(oc_namespace_open(cache, kNamespace, strlen(kNamespace), NULL, &space, &error));
  return space;
}

static void make_keys(oc_namespace* space, oc_key units[10], oc_key chunks[kChunks]) {
  uint32_t tokens[kTokens];
  size_t count = 0;
  for (uint32_t i = 0; i < kTokens; ++i) tokens[i] = i;
  CHECK(oc_unit_keys(space, "salt", 4, tokens, kTokens, NULL, 0, &count, &error) ==
        OC_LIMIT_EXCEEDED);
  CHECK(count == kTokens / kUnitTokens);
  CHECK_OK(oc_unit_keys(space, "salt", 4, tokens, kTokens, units, 10, &count, &error));
  CHECK(count == 10);
  CHECK_OK(oc_chunk_keys(space, units, count, chunks, kChunks, &count, &error));
  CHECK(count == kChunks);
  CHECK(memcmp(&chunks[1], &units[3], sizeof chunks[1]) == 0);
}

static void write_prefix(oc_namespace* space, const oc_key* units) {
  oc_writer* writer = NULL;
  oc_write_summary summary;
  unsigned char slice[kChunkTokens * 64];
  CHECK_OK(oc_writer_open(space, units, 10, 0, &writer, &error));
  for (unsigned layer = 0; layer < kLayers; ++layer) {
    for (unsigned chunk = 0; chunk < kChunks; ++chunk) {
      CHECK(oc_writer_wants(writer, chunk) == 1);
      for (size_t i = 0; i < sizeof slice; ++i) slice[i] = byte_of(layer, chunk, i);
      const oc_const_segment halves[2] = {{slice, 512}, {slice + 512, 512}};
      if (chunk == 0) {
        CHECK_OK(oc_writer_write_unit_slice(writer, layer, chunk, 1, &halves[1], 1, &error));
        CHECK_OK(oc_writer_write_unit_slice(writer, layer, chunk, 0, &halves[0], 1, &error));
      } else {
        CHECK_OK(oc_writer_write_slice(writer, layer, chunk, halves, 2, &error));
      }
      CHECK(oc_writer_write_slice(writer, kLayers, chunk, halves, 2, &error) ==
            OC_INVALID_ARGUMENT);
      CHECK(strstr(error.message, "layers") != NULL);
    }
  }
  CHECK(oc_writer_wants(writer, kChunks) == 0);
  CHECK_OK(oc_writer_finish(writer, 10000, &summary, &error));
  CHECK(summary.published == kChunks && summary.failed == 0 && summary.dropped == 0);
  CHECK(summary.bytes_published > kChunks * kLayers * sizeof slice);
  oc_writer_close(writer);
}

static void read_prefix(oc_namespace* space, const oc_key* chunks, int scattered) {
  enum { kSliceBytes = kChunkTokens * 64 };
  unsigned char* memory = calloc(kLayers * kChunks, kSliceBytes);
  oc_segment segments[kLayers * kChunks];
  uint32_t starts[kLayers * kChunks + 1];
  const uint64_t windows[kLayers] = {1000000, 1000000, 1000000};
  oc_read_request request;
  oc_stream* stream = NULL;
  int64_t chunk = 0;
  CHECK(memory != NULL);
  oc_read_request_init(&request);
  request.chunks = chunks;
  request.chunk_count = kChunks;
  request.timeout_ms = 10000;
  request.windows_ns = windows;
  request.window_count = kLayers;
  request.segments = segments;
  if (scattered) {
    for (uint32_t i = 0; i < kLayers * kChunks; ++i) {
      segments[i].data = memory + i * kSliceBytes;
      segments[i].size = kSliceBytes;
      starts[i] = i;
    }
    starts[kLayers * kChunks] = kLayers * kChunks;
    request.segment_count = kLayers * kChunks;
    request.slice_starts = starts;
    request.slice_start_count = kLayers * kChunks + 1;
  } else {
    for (uint32_t i = 0; i < kLayers; ++i) {
      segments[i].data = memory + (size_t)i * kChunks * kSliceBytes;
      segments[i].size = (size_t)kChunks * kSliceBytes;
    }
    request.segment_count = kLayers;
  }
  CHECK_OK(oc_stream_open(space, &request, &stream, &error));
  struct pollfd poller = {.fd = oc_stream_eventfd(stream), .events = POLLIN};
  CHECK(poller.fd >= 0);
  CHECK(poll(&poller, 1, 10000) == 1);
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    CHECK_OK(oc_stream_wait(stream, layer, 10000, &error));
    CHECK(oc_stream_ready_layers(stream) > layer);
    for (uint32_t i = 0; i < kChunks; ++i) {
      const unsigned char* slice = memory + ((size_t)layer * kChunks + i) * kSliceBytes;
      for (size_t at = 0; at < kSliceBytes; ++at) CHECK(slice[at] == byte_of(layer, i, at));
    }
  }
  CHECK_OK(oc_stream_failure(stream, &chunk, &error));
  CHECK(chunk == -1);
  CHECK_OK(oc_stream_cancel_and_wait(stream, 10000, &error));
  CHECK(oc_stream_ended(stream) == 1);
  oc_stream_close(stream);
  free(memory);
}

static void test_the_whole_way(void) {
  oc_cache* cache = NULL;
  oc_key units[10];
  oc_key chunks[kChunks];
  uint32_t count = 99;
  oc_cache_options options;
  const char* const environment[] = {"AWS_REGION=nowhere", "nonsense", NULL};
  oc_cache_options_init(&options);
  options.tenant = "team-1";
  options.environment = environment;
  CHECK_OK(oc_cache_open("memory:", &options, &cache, &error));
  oc_namespace* space = open_namespace(cache);
  CHECK(oc_namespace_layers(space) == kLayers);
  CHECK(oc_namespace_unit_tokens(space) == kUnitTokens);
  CHECK(oc_namespace_chunk_tokens(space) == kChunkTokens);
  CHECK(oc_namespace_slice_bytes(space, 2) == kChunkTokens * 64);
  CHECK(oc_namespace_slice_bytes(space, kLayers) == 0);
  make_keys(space, units, chunks);
  CHECK_OK(oc_match(space, chunks, kChunks, 5000, &count, &error));
  CHECK(count == 0);
  write_prefix(space, units);
  CHECK_OK(oc_match(space, chunks, kChunks, 5000, &count, &error));
  CHECK(count == kChunks);
  CHECK_OK(oc_prove(space, chunks, kChunks, 5000, &count, &error));
  CHECK(count == kChunks);
  oc_forget(space, chunks, kChunks);
  read_prefix(space, chunks, 0);
  read_prefix(space, chunks, 1);

  char text[4096];
  const size_t length = oc_cache_stats_json(cache, text, sizeof text);
  CHECK(length == strlen(text) && text[0] == '{' && text[length - 1] == '}');
  CHECK(strstr(text, "\"chunks_published\":5,") != NULL);
  CHECK(strstr(text, "\"streams_opened\":2,") != NULL);
  CHECK(oc_cache_stats_json(cache, text, 10) == length && strlen(text) == 9);
  CHECK(oc_cache_stats_json(cache, NULL, 0) == length);
  oc_namespace_close(space);
  oc_cache_close(cache);
}

static void test_a_failed_read(void) {
  oc_cache* cache = NULL;
  oc_key units[10];
  oc_key chunks[kChunks];
  unsigned char memory[kLayers][kChunks * kChunkTokens * 64];
  oc_segment segments[kLayers];
  oc_read_request request;
  oc_stream* stream = NULL;
  int64_t chunk = -1;
  CHECK_OK(oc_cache_open("memory:", NULL, &cache, &error));
  oc_namespace* space = open_namespace(cache);
  make_keys(space, units, chunks);
  for (int i = 0; i < kLayers; ++i) {
    segments[i].data = memory[i];
    segments[i].size = sizeof memory[i];
  }
  oc_read_request_init(&request);
  request.chunks = chunks;
  request.chunk_count = kChunks;
  request.segments = segments;
  request.segment_count = kLayers;
  CHECK(oc_stream_open(space, &request, &stream, &error) == OC_OK || stream == NULL);
  oc_stream_close(stream);
  request.timeout_ms = 10000;
  CHECK_OK(oc_stream_open(space, &request, &stream, &error));
  CHECK(oc_stream_wait(stream, 0, 10000, &error) == OC_NOT_FOUND);
  CHECK(error.code == OC_NOT_FOUND && error.retryable == 0);
  CHECK(oc_stream_failure(stream, &chunk, &error) == OC_NOT_FOUND);
  CHECK(chunk == 0);
  oc_stream_cancel(stream);
  /* In the wrong order, on purpose. */
  oc_cache_close(cache);
  uint32_t count = 7;
  CHECK(oc_match(space, chunks, kChunks, 1000, &count, &error) == OC_CANCELLED);
  CHECK(count == 0);
  oc_namespace_close(space);
  oc_stream_close(stream);
}

static void test_bad_arguments(void) {
  oc_cache* cache = (oc_cache*)&error;
  oc_namespace* space = NULL;
  CHECK(oc_cache_open("nonsense:", NULL, &cache, &error) == OC_INVALID_ARGUMENT);
  CHECK(cache == NULL && error.code == OC_INVALID_ARGUMENT && strlen(error.message) > 10);
  oc_cache_options options;
  oc_cache_options_init(&options);
  options.struct_size -= 1;
  CHECK(oc_cache_open("memory:", &options, &cache, &error) == OC_INVALID_ARGUMENT);
  oc_cache_options_init(&options);
  options.reactor_threads = 0;
  CHECK(oc_cache_open("memory:", &options, &cache, &error) == OC_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "reactor_threads") != NULL);
  CHECK_OK(oc_cache_open("memory:", NULL, &cache, &error));
  CHECK(oc_namespace_open(cache, "{}", 2, NULL, &space, &error) == OC_INVALID_ARGUMENT);
  CHECK(space == NULL);
  const oc_shard shard = {5, 4, 0, 1};
  CHECK(oc_namespace_open(cache, kNamespace, strlen(kNamespace), &shard, &space, &error) ==
        OC_INVALID_ARGUMENT);
  space = open_namespace(cache);
  oc_key key = {{0}};
  uint32_t count = 0;
  CHECK(oc_match(space, &key, 1, -1, &count, &error) == OC_INVALID_ARGUMENT);
  CHECK(oc_match(space, NULL, 1, 1, &count, &error) == OC_INVALID_ARGUMENT);
  CHECK(oc_match(space, &key, 1, 1, NULL, &error) == OC_INVALID_ARGUMENT);
  CHECK_OK(oc_match(space, NULL, 0, 1000, &count, &error));
  oc_read_request request;
  oc_read_request_init(&request);
  request.chunks = &key;
  request.chunk_count = 1;
  request.timeout_ms = 1000;
  request.mode = 17;
  oc_stream* stream = NULL;
  CHECK(oc_stream_open(space, &request, &stream, &error) == OC_INVALID_ARGUMENT);
  request.mode = 0;
  request.segment_count = 3;
  CHECK(oc_stream_open(space, &request, &stream, &error) == OC_INVALID_ARGUMENT);
  CHECK(stream == NULL);
  size_t keys = 0;
  unsigned char hash[32] = {0};
  CHECK(oc_engine_unit_keys(space, "", 0, hash, sizeof hash, 1, &key, 1, &keys, &error) ==
        OC_INVALID_ARGUMENT);
  oc_namespace_close(space);
  oc_cache_close(cache);
}

static void test_null(void) {
  oc_key key = {{0}};
  size_t size = 1;
  uint32_t count = 1;
  CHECK(oc_cache_open(NULL, NULL, NULL, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_cache_open("memory:", NULL, NULL, &error) == OC_INVALID_ARGUMENT);
  oc_cache_options_init(NULL);
  oc_read_request_init(NULL);
  oc_cache_close(NULL);
  CHECK(oc_cache_stats_json(NULL, NULL, 0) == 0);
  CHECK(oc_namespace_open(NULL, kNamespace, 1, NULL, NULL, NULL) == OC_INVALID_ARGUMENT);
  oc_namespace_close(NULL);
  CHECK(oc_namespace_layers(NULL) == 0 && oc_namespace_unit_tokens(NULL) == 0);
  CHECK(oc_namespace_chunk_tokens(NULL) == 0 && oc_namespace_slice_bytes(NULL, 0) == 0);
  CHECK(oc_unit_keys(NULL, NULL, 0, NULL, 0, NULL, 0, &size, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_unit_keys(NULL, NULL, 0, NULL, 0, NULL, 0, NULL, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_engine_unit_keys(NULL, NULL, 0, NULL, 0, 0, NULL, 0, &size, NULL) ==
        OC_INVALID_ARGUMENT);
  CHECK(oc_chunk_keys(NULL, NULL, 0, NULL, 0, &size, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_match(NULL, &key, 1, 1, &count, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_prove(NULL, &key, 1, 1, &count, NULL) == OC_INVALID_ARGUMENT);
  oc_forget(NULL, &key, 1);
  CHECK(oc_stream_open(NULL, NULL, NULL, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_stream_wait(NULL, 0, 0, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_stream_ready_layers(NULL) == 0 && oc_stream_ended(NULL) == 1);
  CHECK(oc_stream_failure(NULL, NULL, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_stream_eventfd(NULL) == -1);
  oc_stream_cancel(NULL);
  CHECK(oc_stream_cancel_and_wait(NULL, 0, NULL) == OC_INVALID_ARGUMENT);
  oc_stream_close(NULL);
  CHECK(oc_writer_open(NULL, NULL, 0, 0, NULL, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_writer_wants(NULL, 0) == 0);
  CHECK(oc_writer_write_slice(NULL, 0, 0, NULL, 0, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_writer_write_unit_slice(NULL, 0, 0, 0, NULL, 0, NULL) == OC_INVALID_ARGUMENT);
  CHECK(oc_writer_finish(NULL, 0, NULL, NULL) == OC_INVALID_ARGUMENT);
  oc_writer_abandon(NULL);
  oc_writer_close(NULL);
  CHECK(strcmp(oc_error_name(OC_OK), "ok") == 0);
  CHECK(strcmp(oc_error_name(OC_THROTTLED), "throttled") == 0);
  CHECK(strcmp(oc_error_name(15), "unknown") == 0 && strcmp(oc_error_name(-1), "unknown") == 0);
}

/* Several threads on one namespace handle. */
static void* match_often(void* handle) {
  oc_key key = {{1}};
  for (int i = 0; i < 100; ++i) {
    uint32_t count = 1;
    oc_error mine;
    CHECK(oc_match(handle, &key, 1, 5000, &count, &mine) == OC_OK);
    CHECK(count == 0);
  }
  return NULL;
}

static void test_threads(void) {
  oc_cache* cache = NULL;
  pthread_t threads[4];
  CHECK_OK(oc_cache_open("memory:", NULL, &cache, &error));
  oc_namespace* space = open_namespace(cache);
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, match_often, space) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  oc_namespace_close(space);
  oc_cache_close(cache);
}

int main(void) {
  test_null();
  test_bad_arguments();
  test_the_whole_way();
  test_a_failed_read();
  test_threads();
  puts("C API: all checks passed");
  return 0;
}
