#include "cli/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace objectcache::cli {
namespace {

constexpr std::size_t kLabelColumns = 8;
constexpr std::array<std::string_view, 2> kShades = {"\u2588", "\u2593"};  // full, dark shade
constexpr std::string_view kWaiting = "\u00b7";                            // middle dot

/// One bar: what to draw in each column.
class Bar {
 public:
  Bar(Duration scale, int columns)
      : scale_(std::max(scale, Duration{1})),
        cells_(static_cast<std::size_t>(columns) - kLabelColumns, " ") {}

  void fill(Duration begin, Duration end, std::string_view cell) {
    const std::size_t last = std::min(column(end), cells_.size());
    for (std::size_t i = column(begin); i < last; ++i) cells_[i] = cell;
  }
  [[nodiscard]] std::string text(std::string_view label) const {
    return fmt::format("{:<{}}{}", label, kLabelColumns, fmt::join(cells_, ""));
  }

 private:
  [[nodiscard]] std::size_t column(Duration at) const {
    const double share = static_cast<double>(at.count()) / static_cast<double>(scale_.count());
    return static_cast<std::size_t>(
        std::max(0.0, share * static_cast<double>(cells_.size()) + 0.5));
  }

  Duration scale_;
  std::vector<std::string_view> cells_;
};

}  // namespace

std::string draw_timeline(const std::vector<LayerSpan>& layers, Duration scale, int columns) {
  Bar load(scale, columns);
  Bar compute(scale, columns);
  Duration loaded{};
  Duration computed{};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    load.fill(loaded, layers[l].loaded, kShades[l % 2]);
    loaded = std::max(loaded, layers[l].loaded);
    compute.fill(computed, layers[l].compute_begin, kWaiting);
    compute.fill(layers[l].compute_begin, layers[l].compute_end, kShades[l % 2]);
    computed = layers[l].compute_end;
  }
  return load.text("load") + "\n" + compute.text("compute") + "\n";
}

std::string draw_time_axis(Duration scale, int columns) {
  const auto width = static_cast<std::size_t>(columns) - kLabelColumns;
  constexpr std::size_t kTicks = 5;
  const double total_ms = std::chrono::duration<double, std::milli>(scale).count();
  std::string axis(width, ' ');
  for (std::size_t tick = 0; tick < kTicks; ++tick) {
    const double at_ms = total_ms * static_cast<double>(tick) / kTicks;
    const std::string label = fmt::format("{:.0f}{}", at_ms, tick == 0 ? " ms" : "");
    axis.replace(width * tick / kTicks, label.size(), label);
  }
  axis.resize(width);
  return std::string(kLabelColumns, ' ') + axis + "\n";
}

}  // namespace objectcache::cli
