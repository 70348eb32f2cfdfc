#pragma once

#include <cstdint>

#include "cli/commands.h"
#include "cli/console.h"

namespace objectcache::cli {

struct DoctorOptions {
  StoreOptions store;
  std::uint32_t megabytes = 32;  ///< What the bandwidth check writes and reads.
};

/// Checks that a store can be used, with objects of its own under ".objectcache-doctor-<random>/",
/// which it removes: reach, clock, rights, conditional PUT, ranges, versions, integrity, TLS,
/// latency, bandwidth. Says for each failing check what to do.
ExitCode run_doctor(const DoctorOptions& options, Console& console);

}  // namespace objectcache::cli
