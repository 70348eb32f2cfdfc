#pragma once

#include <cstdint>

#include "cli/console.h"

namespace objectcache::cli {

struct DemoOptions {
  std::uint32_t scale = 32;  ///< Bytes and link are divided by it; times stay what they are.
};

/// Needs nothing but the program: writes a prefix of the shape of Llama 3.1 8B (scaled down) into a
/// file store in a temporary folder, reads it back whole and then layer by layer over a modelled
/// link against a modelled GPU, compares every byte, and draws both timelines.
ExitCode run_demo(const DemoOptions& options, Console& console);

}  // namespace objectcache::cli
