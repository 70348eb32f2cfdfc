#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "objectcache/namespace_spec.h"

namespace objectcache::cli {

ExitCode run_version(Console& console) {
  console.line(fmt::format("objectcache {} (format {})", OBJECTCACHE_VERSION,
                           NamespaceSpec::kFormatVersion));
  console.document(
      {{"version", OBJECTCACHE_VERSION}, {"format_version", NamespaceSpec::kFormatVersion}});
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
