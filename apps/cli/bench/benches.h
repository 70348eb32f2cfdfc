#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/console.h"
#include "objectcache/cache.h"

/// The benches of `objectcache bench NAME`; docs/bench.md lists them and every field of their JSON.
namespace objectcache::cli {

/// What all of them take.
struct BenchOptions {
  bool small = false;  ///< Some hundred milliseconds: for the test suite, not for figures.
  Environment environment;
};

/// Range reads from an S3 store, ours beside other clients, each in a process of its own.
struct StoreReadOptions {
  BenchOptions common;
  std::string url;      ///< s3:// over http; both empty: servers in memory are started.
  std::string url_tls;  ///< s3:// over https.
  std::vector<std::uint32_t> connections{1, 4, 16};
  std::vector<std::uint32_t> range_kib{256, 1024};
  std::vector<std::string> clients;  ///< Empty: all.
  std::uint32_t runs = 5;            ///< Of each client, interleaved.
  std::uint32_t run_mib = 512;       ///< Bytes that one run reads.
  std::uint32_t objects = 16;        ///< Of 16 MiB each.
  std::string python;                ///< Interpreter that has obstore and awscrt; empty: .venv.
  std::string baselines;             ///< Folder of the scripts; empty: found beside the program.
};
ExitCode run_bench_store_read(const StoreReadOptions& options, Console& console);

/// Our client of store-read, run by it as a child: reads what the workload file says.
struct StoreReadClientOptions {
  BenchOptions common;
  std::string workload;
  bool check = true;       ///< Compare CRC-32C of each range.
  std::string parameters;  ///< "&name=value" added to the URL.
};
ExitCode run_store_read_client(const StoreReadClientOptions& options, Console& console);

/// How long match and prove take when the store answers after a millisecond.
struct MatchDirectOptions {
  BenchOptions common;
  std::string url;      ///< Empty: the test server with `latency_ms` is started.
  std::string url_rgw;  ///< Reported beside it.
  double latency_ms = 1;
  std::uint32_t chunks = 1024;
  std::uint32_t prove_chunks = 896;
  std::uint32_t runs = 21;
};
ExitCode run_bench_match_direct(const MatchDirectOptions& options, Console& console);

/// Memory that a large read adds beside its destination.
struct MemoryOptions {
  BenchOptions common;
  std::string url;  ///< Empty: the test server is started.
  std::uint32_t mib = 4096;
  std::uint32_t connections = 16;
};
ExitCode run_bench_memory(const MemoryOptions& options, Console& console);

/// Reads a made-up prefix as one layer stream: the child of the memory and cpu benches.
struct StreamReadClientOptions {
  BenchOptions common;
  std::string url;
  std::uint32_t layers = 32;
  std::uint32_t chunks = 1;  ///< Of 1 MiB a layer.
  std::uint32_t repeat = 1;
  std::uint32_t connections = 16;
};
ExitCode run_stream_read_client(const StreamReadClientOptions& options, Console& console);

/// Instructions a byte of the read path, counted by callgrind, and CPU seconds a GB.
struct CpuOptions {
  BenchOptions common;
  std::string url;  ///< Both empty: servers in memory are started.
  std::string url_tls;
  std::uint32_t mib = 256;  ///< What the larger of two runs reads more than the smaller.
};
ExitCode run_bench_cpu(const CpuOptions& options, Console& console);

}  // namespace objectcache::cli
