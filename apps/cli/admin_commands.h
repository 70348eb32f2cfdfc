#pragma once

#include <string>

#include "cli/commands.h"
#include "cli/console.h"

namespace objectcache::cli {

struct ListOptions {
  StoreOptions store;
  bool all_tenants = false;
  std::string namespace_hex;  ///< Empty: list namespaces. Else the chunks of this one.
};
struct StatOptions {
  StoreOptions store;
};
struct VerifyCommandOptions {
  StoreOptions store;
  std::string namespace_hex;  ///< Empty: all of the tenant.
  std::uint32_t parallel = 4;
  bool repair = false;
};
struct RemoveOptions {
  StoreOptions store;
  std::string namespace_hex;      ///< What to remove: one namespace...
  bool whole_tenant = false;      ///< ... or everything of the tenant ...
  PrefixOptions prefix;           ///< ... or, with files given, the chunks of a prompt
  std::uint32_t first_chunk = 0;  ///< from this one on.
  bool dry_run = false;
  bool yes = false;
};

ExitCode run_list(const ListOptions& options, Console& console);
ExitCode run_stat(const StatOptions& options, Console& console);
ExitCode run_verify(const VerifyCommandOptions& options, Console& console);
ExitCode run_remove(const RemoveOptions& options, Console& console);

}  // namespace objectcache::cli
