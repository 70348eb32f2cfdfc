#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/console.h"
#include "objectcache/cache.h"

namespace objectcache::cli {

/// The published rows, replayed against a modelled GPU: what each way of reading adds to the TTFT.
struct LayersOptions {
  struct Common {
    bool small = false;  ///< One tiny row from memory and from files: for the test suite.
    Environment environment;
  } common;
  /// Where fewer chunks, slices as they are, are read from, behind a link that is capped from
  /// outside. Empty: like all chunks with smaller slices, from memory and from a folder of files
  /// behind a modelled link.
  std::string url;
  bool modelled_link = false;         ///< Put the modelled link before `url` as well.
  std::vector<std::string> rows;      ///< Empty: all.
  std::vector<std::string> modes;     ///< whole-prefix, layerwise, whole-objects, planned.
  std::vector<std::string> layouts;   ///< chunk, layer.
  std::vector<std::string> scalings;  ///< chunks, slices.
  std::vector<std::string> stores;    ///< For what is not read from `url`: memory, file.
  std::uint32_t scale = 32;           ///< f: bytes and link are divided by it.
  std::uint32_t runs = 9;             ///< Of each mode, in turn.
  std::uint32_t connections = 0;      ///< K; 0: by the row.
  double first_byte_ms = 0;           ///< Of the modelled link.
};
ExitCode run_bench_layers(const LayersOptions& options, Console& console);

}  // namespace objectcache::cli
