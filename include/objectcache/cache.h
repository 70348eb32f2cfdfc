#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/export.h"
#include "objectcache/layer_stream.h"
#include "objectcache/namespace_spec.h"
#include "objectcache/prefix_writer.h"
#include "objectcache/shard.h"
#include "objectcache/types.h"

namespace objectcache {

/// The process environment that a store may draw on. The library reads none by itself: programs
/// fill this in (`CacheOptions::environment`), so that tests and hosts stay in control.
struct Environment {
  std::map<std::string, std::string> variables;  ///< AWS_ACCESS_KEY_ID, AWS_CA_BUNDLE...
  std::string home_directory;                    ///< For ~/.aws/credentials and ~/.aws/config.
};

struct CacheOptions {
  std::string tenant = "default";
  /// Memory for reads beside the destination (headers, re-reads, hedges), whole process.
  std::uint64_t read_memory_bytes = 64ULL << 20;
  /// Memory for chunks being collected or published, whole process.
  std::uint64_t write_memory_bytes = 1ULL << 30;
  std::uint32_t streams_max = 1024;             ///< Open layer streams; more: kLimitExceeded.
  std::uint32_t requests_in_flight_max = 64;    ///< Range reads of all streams together.
  std::uint32_t stream_connections_max = 16;    ///< K of one stream.
  std::uint32_t writes_in_flight_max = 4;       ///< PUTs at once.
  std::uint32_t match_probes_max = 34;          ///< Parallel probes of one match.
  std::uint32_t match_cache_entries_max = 65536;
  std::chrono::milliseconds negative_cache_ttl{1000};  ///< At most a second.
  std::uint32_t reactor_threads = 1;
  bool delete_bad_objects = true;  ///< Delete an object that failed its check, if rights permit.
  Environment environment;
};

/// How many leading chunks are probably stored. A hint: a later read may still find less.
struct Match {
  std::uint32_t chunks = 0;
  std::uint32_t probes = 0;  ///< Requests it took; 0: answered from the cache.
  std::uint32_t rounds = 0;
};

/// Leading chunks whose headers were fetched and checked.
struct Proof {
  std::uint32_t chunks = 0;
};

/// Figures since the Cache was opened; names and units are those of docs/operating.md.
struct CacheStats {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t requests_get = 0;
  std::uint64_t requests_head = 0;
  std::uint64_t requests_put = 0;
  std::uint64_t requests_list = 0;
  std::uint64_t requests_delete = 0;
  std::uint64_t retries = 0;
  std::uint64_t hedges = 0;
  std::uint64_t hedge_bytes = 0;
  std::uint64_t corrupt_found = 0;
  std::uint64_t streams_opened = 0;
  std::uint64_t streams_failed = 0;
  std::uint64_t chunks_published = 0;
  std::uint64_t chunks_already_present = 0;
  std::uint64_t chunks_dropped = 0;
  std::vector<Duration> layer_wait_total;            ///< Summed over streams, by layer.
  std::map<std::string, std::uint64_t> errors;       ///< By error_code_name().
};

/// One namespace of a cache, seen by one shard: the handle for matching, reading and writing.
///
/// Threads: any. Lifetime: the Cache must outlive it.
class OBJECTCACHE_EXPORT CacheNamespace {
 public:
  CacheNamespace(CacheNamespace&&) noexcept;
  CacheNamespace& operator=(CacheNamespace&&) noexcept;
  CacheNamespace(const CacheNamespace&) = delete;
  CacheNamespace& operator=(const CacheNamespace&) = delete;
  ~CacheNamespace();

  [[nodiscard]] const NamespaceSpec& spec() const noexcept;
  [[nodiscard]] const Shard& shard() const noexcept;

  /// Finds how many leading chunks are stored: two rounds of parallel probes for 1,024 chunks.
  /// `hint` is a guess to look at first. On a deadline the answer is what is known by then.
  [[nodiscard]] Result<Match> match(std::span<const ChunkKey> chunks, TimePoint deadline,
                                    std::optional<std::uint32_t> hint = std::nullopt);
  /// Fetches and checks the headers of the chunks: what it counts is there and of this namespace.
  [[nodiscard]] Result<Proof> prove(std::span<const ChunkKey> chunks, TimePoint deadline);
  /// Starts a read. Returns at once; arguments are checked before.
  [[nodiscard]] Result<LayerStream> open_stream(ReadRequest request);
  /// Starts a write of the chunks that `unit_keys` (all units of the prefix, in order) make up.
  /// `first_chunk`: chunks before it are not written (already matched).
  [[nodiscard]] Result<PrefixWriter> open_writer(std::span<const UnitKey> unit_keys,
                                                 std::uint32_t first_chunk = 0);
  /// Drops what match() remembers of these chunks.
  void forget(std::span<const ChunkKey> chunks);

  class Impl;
  explicit CacheNamespace(std::shared_ptr<Impl> impl) noexcept;
  /// For the rooms above (command line, benches), not for users.
  [[nodiscard]] const std::shared_ptr<Impl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

/// A store of KV: owns the connections, the threads, the memory limits and the one admission point
/// through which all reads pass. One per process and store.
///
/// Threads: any. Lifetime: must outlive its namespaces, streams and writers.
class OBJECTCACHE_EXPORT Cache {
 public:
  /// Opens the store at `url` (docs/url.md): "memory:", "file:/dir", "s3://bucket/prefix?...".
  /// Does not contact the store. Unknown schemes and parameters are refused by name.
  [[nodiscard]] static Result<std::unique_ptr<Cache>> open(std::string_view url,
                                                           CacheOptions options = {});
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  /// Cancels what is running and waits for it, bounded by the store's own deadlines.
  ~Cache();

  [[nodiscard]] Result<CacheNamespace> open_namespace(NamespaceSpec spec, Shard shard = {});
  [[nodiscard]] CacheStats stats() const;

  class Impl;
  /// For the rooms above (command line, benches), not for users.
  [[nodiscard]] Impl& impl() const noexcept { return *impl_; }

 private:
  explicit Cache(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace objectcache
