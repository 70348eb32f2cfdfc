#pragma once

#include <string>
#include <vector>

#include "objectcache/types.h"

namespace objectcache::cli {

/// When one layer was loaded and computed, counted from the start of the request.
struct LayerSpan {
  Duration loaded{};  ///< Its bytes are in place.
  Duration compute_begin{};
  Duration compute_end{};
};

/// Draws a run as two bars over one time axis, each layer in alternating shades: what the link
/// carried, and what the GPU did; where the GPU waited there is a dot.
///
///   load    ████▓▓▓▓████▓▓▓▓
///   compute ····████▓▓▓▓████▓▓▓▓
///
/// `scale` is the time of the right edge; a longer run is cut there. Requires columns >= 40.
[[nodiscard]] std::string draw_timeline(const std::vector<LayerSpan>& layers, Duration scale,
                                        int columns);
/// The axis under such bars: "0 ms      100      200".
[[nodiscard]] std::string draw_time_axis(Duration scale, int columns);

}  // namespace objectcache::cli
