#include "plan/read_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "plan/pass_model.h"

namespace objectcache::plan {
namespace {

using Widths = std::vector<std::uint32_t>;

double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

/// Saturates: a prediction of centuries is still a prediction.
Duration duration(double s) {
  constexpr double kMax = 9e9;
  return Duration(static_cast<std::int64_t>(std::clamp(s, 0.0, kMax) * 1e9));
}

std::unexpected<Error> refuse(std::string cause) {
  return fail(ErrorCode::kInvalidArgument, std::move(cause), "plan read");
}

Result<void> check(const ReadJob& job, const StoreCharacter& store, const PlanOptions& options) {
  const std::size_t layers = job.slice_bytes.size();
  if (job.chunks < 1) return refuse("there is no chunk to read");
  if (layers < 1 || layers > kLayersMax) return refuse("the number of layers is out of range");
  if (job.first_layer >= layers) return refuse("the first layer wanted is beyond the last one");
  if (std::ranges::find(job.slice_bytes, 0U) != job.slice_bytes.end()) {
    return refuse("a slice is empty");
  }
  if (job.units_per_chunk < 1 || job.last_chunk_units > job.units_per_chunk) {
    return refuse("the units of the last chunk do not fit a chunk");
  }
  if (job.width_max < 1) return refuse("a request covers at least one layer");
  if (!job.windows.empty() && job.windows.size() != layers) {
    return refuse(fmt::format("{} windows for {} layers", job.windows.size(), layers));
  }
  if (std::ranges::any_of(job.windows, [](Duration d) { return d < Duration::zero(); })) {
    return refuse("a window is negative");
  }
  if (store.connections < 1) return refuse("at least one connection is needed");
  const bool rates_make_sense =
      std::isfinite(store.bytes_per_s) && store.bytes_per_s > 0 &&
      std::isfinite(store.connection_bytes_per_s) && store.connection_bytes_per_s >= 0 &&
      std::isfinite(store.requests_per_s) && store.requests_per_s >= 0 &&
      store.first_byte >= Duration::zero() && store.first_byte_exposed >= 0 &&
      store.first_byte_exposed <= 1 && std::isfinite(options.margin) && options.margin >= 0;
  if (!rates_make_sense) return refuse("rates must be finite and positive, times not negative");
  return {};
}

/// Chooses the widths of PlanMode::kPlanned.
class WidthChooser {
 public:
  WidthChooser(const ReadJob& job, const StoreCharacter& store, const PlanOptions& options,
               const PassModel& model)
      : model_(model),
        layers_(model.layers()),
        first_(model.first_layer()),
        width_max_(std::min(job.width_max, layers_ - first_)),
        inflate_(1 + options.margin) {
    const auto& sizes = job.slice_bytes;
    const std::uint64_t smallest = *std::min_element(sizes.begin() + first_, sizes.end());
    floor_width_ = clamp_width(static_cast<double>(options.request_bytes_min / smallest));
    // Waiting for first bytes dominates where connections are few: then a wider first pass at most
    // doubles the wait for the first layer, and saves whole passes later.
    const double transfer = model.transfer_s(first_, 1);
    first_width_max_ =
        std::max(floor_width_, clamp_width(1 + model.waits_s(first_, 1, true) / transfer));
    one_pass_ =
        store.connections >= job.chunks && model.lanes() == 1 && width_max_ == layers_ - first_;
    cheap_width_ = cheap_width();
    first_ready_ = model.ready(0, first_, 1, first_, true);
    for (double due = 0; const Duration window : job.windows) {
      due_.push_back(due);
      if (due_.size() > first_) due += seconds(window);
    }
  }

  Widths choose() const {
    if (one_pass_) return {width_max_};
    if (width_max_ == 1) return Widths(layers_ - first_, 1);
    return due_.empty() ? ramp() : smallest_stall();
  }

 private:
  std::uint32_t clamp_width(double width) const {
    return static_cast<std::uint32_t>(std::clamp(width, 1.0, static_cast<double>(width_max_)));
  }

  /// Without windows nothing is due, so the early layers get narrow passes and the later ones
  /// twice as wide ones each, up to the width at which first bytes cost less than a tenth.
  Widths ramp() const {
    const double transfer = model_.transfer_s(first_, 1);
    const std::uint32_t widest =
        std::max({floor_width_, first_width_max_,
                  clamp_width(std::ceil(9 * model_.waits_s(first_, 1, false) / transfer))});
    Widths widths;
    std::uint32_t width = first_width_max_;
    for (std::uint32_t layer = first_; layer < layers_;) {
      widths.push_back(std::min(width, layers_ - layer));
      layer += widths.back();
      width = std::min(widest, width * 2);
    }
    return widths;
  }

  /// The smallest stall for which widths exist, by bisection: the more stall, the later everything
  /// is due, the wider the passes may be.
  Widths smallest_stall() const {
    double enough = stall_of_single_layers();
    double too_little = 0;
    Widths best(layers_ - first_, 1);
    if (auto widths = fit(enough)) best = std::move(*widths);
    if (auto widths = fit(0)) return *widths;
    for (int i = 0; i < 40 && enough - too_little > 1e-6 * enough; ++i) {
      const double stall = (enough + too_little) / 2;
      if (auto widths = fit(stall)) {
        enough = stall;
        best = std::move(*widths);
      } else {
        too_little = stall;
      }
    }
    return best;
  }

  double stall_of_single_layers() const {
    PassClock clock(model_);
    std::vector<double> ready;
    double stall = 0;
    for (std::uint32_t layer = first_; layer < layers_; ++layer) {
      clock.add(layer, 1, ready);
      stall = std::max(stall, ready.back() - due_[layer]);
    }
    return stall * (1 + 1e-9);
  }

  /// The widest passes, first to last, that meet all due times under this stall; empty if there
  /// are none. Taking the widest loses nothing: where a pass ends decides when the next one can
  /// start, and fewer passes can only start it earlier.
  std::optional<Widths> fit(double stall) const {
    PassClock clock(model_);
    std::vector<double> ready;
    Widths widths;
    for (std::uint32_t layer = first_; layer < layers_;) {
      const std::uint32_t limit =
          std::min({width_max_, layers_ - layer, layer == first_ ? first_width_max_ : layers_});
      if (!meets(clock, layer, 1, stall)) return std::nullopt;
      const std::uint32_t width = widest(clock, layer, limit, stall);
      widths.push_back(width);
      clock.add(layer, width, ready);
      layer += width;
    }
    return widths;
  }

  /// From this width on, waiting for first bytes costs less than a fiftieth of the transfer.
  std::uint32_t cheap_width() const {
    constexpr double kCheap = 0.02;
    std::uint32_t width = 1;
    while (width < width_max_ &&
           model_.waits_s(first_, width, false) > kCheap * model_.transfer_s(first_, width)) {
      ++width;
    }
    return std::max(width, floor_width_);
  }

  /// Slack that comes from windows is real. Slack that is there only because the last layers will
  /// be late in any case disappears when the link turns out faster than believed: it is used no
  /// further than saves time. If a width is allowed, so is every smaller one.
  bool allowed(const PassClock& clock, std::uint32_t layer, std::uint32_t width,
               double stall) const {
    if (!meets(clock, layer, width, stall)) return false;
    return width <= cheap_width_ || meets(clock, layer, width, first_ready_);
  }

  std::uint32_t widest(const PassClock& clock, std::uint32_t layer, std::uint32_t limit,
                       double stall) const {
    std::uint32_t good = 1;
    std::uint32_t bad = limit + 1;
    while (good + 1 < bad) {
      const std::uint32_t width = good + (bad - good) / 2;
      (allowed(clock, layer, width, stall) ? good : bad) = width;
    }
    return good;
  }

  bool meets(const PassClock& clock, std::uint32_t first, std::uint32_t width, double stall) const {
    const double start = clock.start();
    const double stretch = width > 1 ? inflate_ : 1;
    for (std::uint32_t layer = first; layer < first + width; ++layer) {
      const double ready = start + (clock.ready(first, width, layer) - start) * stretch;
      if (ready > stall + due_[layer]) return false;
    }
    return true;
  }

  const PassModel& model_;
  std::uint32_t layers_;
  std::uint32_t first_;
  std::uint32_t width_max_;
  std::uint32_t floor_width_ = 1;
  std::uint32_t first_width_max_ = 1;
  std::uint32_t cheap_width_ = 1;
  double first_ready_ = 0;
  double inflate_;
  bool one_pass_ = false;
  std::vector<double> due_;  ///< Of each layer, without the stall; empty: unknown.
};

/// Writes the reads of a plan in order.
class ReadLister {
 public:
  ReadLister(const ReadJob& job, const PlanOptions& options, ReadPlan& plan)
      : job_(job), options_(options), plan_(plan) {}

  /// Pass by pass, each over all chunks.
  Result<void> by_pass(const std::vector<Duration>& due) {
    std::uint32_t layer = job_.first_layer;
    for (std::uint32_t pass = 0; pass < plan_.widths.size(); ++pass) {
      for (std::uint32_t chunk = 0; chunk < job_.chunks; ++chunk) {
        if (auto ok = add(chunk, layer, plan_.widths[pass], pass, due); !ok) return ok;
      }
      layer += plan_.widths[pass];
    }
    return {};
  }

  /// Chunk by chunk, each over all layers.
  Result<void> by_chunk(const std::vector<Duration>& due) {
    for (std::uint32_t chunk = 0; chunk < job_.chunks; ++chunk) {
      std::uint32_t layer = job_.first_layer;
      for (const std::uint32_t width : plan_.widths) {
        if (auto ok = add(chunk, layer, width, 0, due); !ok) return ok;
        layer += width;
      }
    }
    return {};
  }

 private:
  Result<void> add(std::uint32_t chunk, std::uint32_t layer, std::uint32_t width,
                   std::uint32_t pass, const std::vector<Duration>& due) {
    const bool last = chunk + 1 == job_.chunks;
    const std::uint32_t units =
        last && job_.last_chunk_units > 0 ? job_.last_chunk_units : job_.units_per_chunk;
    // A range over several layers drags the unwanted units between them along; where these are
    // many bytes, single layers are read instead.
    const std::uint64_t surplus =
        job_.slice_bytes[layer] / job_.units_per_chunk * (job_.units_per_chunk - units);
    const std::uint32_t step = surplus > 0 && surplus >= options_.request_bytes_min ? 1 : width;
    for (std::uint32_t at = layer; at < layer + width; at += step) {
      if (plan_.reads.size() == kReadsMax) {
        return fail(ErrorCode::kLimitExceeded,
                    fmt::format("the read needs more than {} requests", kReadsMax), "plan read");
      }
      plan_.reads.push_back({.chunk = chunk,
                             .first_layer = at,
                             .layer_count = step,
                             .units = units,
                             .pass = pass,
                             .due = due.empty() ? kNever : due[at]});
    }
    return {};
  }

  const ReadJob& job_;
  const PlanOptions& options_;
  ReadPlan& plan_;
};

PlanMode resolve(const ReadJob& job, const PlanOptions& options) {
  if (options.mode != PlanMode::kPublished) return options.mode;
  double total = 0;
  for (std::size_t layer = job.first_layer; layer < job.slice_bytes.size(); ++layer) {
    total += static_cast<double>(job.slice_bytes[layer]) * job.chunks;
  }
  return total < static_cast<double>(options.published_threshold_bytes) ? PlanMode::kChunkwise
                                                                        : PlanMode::kLayerwise;
}

/// As wide as a request can be, for the modes that read chunk by chunk.
Widths widest_passes(const ReadJob& job) {
  const auto layers = static_cast<std::uint32_t>(job.slice_bytes.size()) - job.first_layer;
  Widths widths;
  for (std::uint32_t done = 0; done < layers; done += widths.back()) {
    widths.push_back(std::min(job.width_max, layers - done));
  }
  return widths;
}

std::vector<double> predict(const ReadJob& job, const PassModel& model, const ReadPlan& plan) {
  PassClock clock(model);
  std::vector<double> ready;
  std::uint32_t layer = job.first_layer;
  for (const std::uint32_t width : plan.widths) {
    clock.add(layer, width, ready);
    layer += width;
  }
  // A layer counts only with all before it; lanes may overtake each other.
  for (std::size_t i = 1; i < ready.size(); ++i) ready[i] = std::max(ready[i], ready[i - 1]);
  if (plan.announce_at_end) std::ranges::fill(ready, ready.back());
  const bool by_chunk =
      plan.mode == PlanMode::kWholeObjects && plan.widths.size() > 1;  // Several requests a chunk.
  if (by_chunk) {
    // The last chunk is asked for last, its layers in order: all but 1/N of the bytes are there.
    const double before_last = ready.back() * (1 - 1.0 / job.chunks);
    const double per_layer = (ready.back() - before_last) / static_cast<double>(ready.size());
    for (std::size_t i = 0; i < ready.size(); ++i) {
      ready[i] = before_last + per_layer * static_cast<double>(i + 1);
    }
  }
  return ready;
}

}  // namespace

Result<ReadPlan> plan_read(const ReadJob& job, const StoreCharacter& store,
                           const PlanOptions& options) {
  if (auto ok = check(job, store, options); !ok) return std::unexpected(std::move(ok).error());
  const PassModel model(job, store);
  ReadPlan plan;
  plan.mode = resolve(job, options);
  plan.announce_at_end = plan.mode == PlanMode::kChunkwise;
  const bool by_chunk = plan.mode == PlanMode::kChunkwise || plan.mode == PlanMode::kWholeObjects;
  if (by_chunk) {
    plan.widths = widest_passes(job);
  } else if (plan.mode == PlanMode::kLayerwise) {
    plan.widths.assign(model.layers() - job.first_layer, 1);
  } else {
    plan.widths = WidthChooser(job, store, options, model).choose();
  }

  const std::vector<double> ready = predict(job, model, plan);
  std::vector<Duration> due;
  double stall = 0;
  if (!job.windows.empty()) {
    double windows = 0;
    std::vector<double> before;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      before.push_back(windows);
      stall = std::max(stall, ready[i] - windows);
      windows += seconds(job.windows[job.first_layer + i]);
    }
    due.resize(job.first_layer);
    for (const double offset : before) due.push_back(duration(stall + offset));
    plan.predicted_stall = duration(stall);
  }
  for (const double at : ready) plan.predicted_ready.push_back(duration(at));

  ReadLister lister(job, options, plan);
  auto listed = by_chunk ? lister.by_chunk(due) : lister.by_pass(due);
  if (!listed) return std::unexpected(std::move(listed).error());
  plan.price = store.price_per_request * static_cast<double>(plan.reads.size());
  return plan;
}

}  // namespace objectcache::plan
