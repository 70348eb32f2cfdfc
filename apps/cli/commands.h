#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "objectcache/cache.h"

namespace objectcache::cli {

/// What every command that reaches a store takes.
struct StoreOptions {
  std::string url;
  std::string tenant = "default";
  std::chrono::milliseconds deadline{60'000};  ///< For the whole command's waits, each.
  Environment environment;
};

/// What names a prefix.
struct PrefixOptions {
  std::string namespace_file;
  std::string tokens_file;
  std::string cache_salt;
  std::string shard = "tp0of1-pp0of1";
};

struct PutOptions {
  StoreOptions store;
  PrefixOptions prefix;
  std::string kv_file;
};
struct GetOptions {
  StoreOptions store;
  PrefixOptions prefix;
  std::string out_file;
  std::string mode = "planned";
  std::uint32_t connections = 0;
  bool require_all = false;
};
struct MatchOptions {
  StoreOptions store;
  PrefixOptions prefix;
  bool prove = false;
};

ExitCode run_put(const PutOptions& options, Console& console);
ExitCode run_get(const GetOptions& options, Console& console);
ExitCode run_match(const MatchOptions& options, Console& console);
ExitCode run_version(Console& console);

}  // namespace objectcache::cli
