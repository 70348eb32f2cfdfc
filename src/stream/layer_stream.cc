#include "objectcache/layer_stream.h"

#include <utility>

#include "stream/layer_stream_impl.h"
#include "stream/open_stream.h"

namespace objectcache {

Destination Destination::contiguous(std::vector<Segment> layers) {
  Destination destination;
  destination.segments_ = std::move(layers);
  return destination;
}

Destination Destination::scattered(std::vector<Segment> segments,
                                   std::vector<std::uint32_t> slice_starts) {
  Destination destination;
  destination.segments_ = std::move(segments);
  destination.slice_starts_ = std::move(slice_starts);
  return destination;
}

LayerStream::LayerStream(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
LayerStream::LayerStream(LayerStream&&) noexcept = default;
LayerStream& LayerStream::operator=(LayerStream&&) noexcept = default;
LayerStream::~LayerStream() = default;

Result<void> LayerStream::wait(std::uint32_t layer, TimePoint deadline) {
  return impl_->state().wait_ready(layer, deadline);
}

std::uint32_t LayerStream::ready_layers() const noexcept { return impl_->state().ready_layers(); }
std::uint32_t LayerStream::layers() const noexcept { return impl_->state().layers(); }
std::optional<StreamFailure> LayerStream::failure() const { return impl_->state().failure(); }
bool LayerStream::ended() const noexcept { return impl_->state().ended(); }
int LayerStream::event_fd() const noexcept { return impl_->state().event_fd(); }
void LayerStream::cancel() noexcept { impl_->task().request_cancel(); }
StreamStats LayerStream::stats() const { return impl_->state().stats(); }

Result<void> LayerStream::cancel_and_wait(TimePoint deadline) {
  cancel();
  if (impl_->state().wait_ended(deadline)) return {};
  return fail(ErrorCode::kDeadlineExceeded, "reads of the stream are still being stopped",
              "cancel");
}

namespace stream {

plan::ReadJob read_job(const format::ChunkLayout& layout, const ReadRequest& request) {
  plan::ReadJob job;
  job.chunks = static_cast<std::uint32_t>(request.chunks.size());
  job.slice_bytes.reserve(layout.layers());
  for (std::uint32_t l = 0; l < layout.layers(); ++l) {
    job.slice_bytes.push_back(layout.slice_bytes(l));
  }
  job.header_bytes = layout.header_bytes();
  job.units_per_chunk = layout.units();
  job.last_chunk_units =
      (request.last_chunk_tokens + layout.unit_tokens() - 1) / layout.unit_tokens();
  job.width_max = layout.layers_per_range_max(0);
  job.windows = request.windows;
  return job;
}

plan::PlanMode plan_mode(ReadMode mode) {
  switch (mode) {
    case ReadMode::kPlanned:
      return plan::PlanMode::kPlanned;
    case ReadMode::kChunkwise:
      return plan::PlanMode::kChunkwise;
    case ReadMode::kLayerwise:
      return plan::PlanMode::kLayerwise;
    case ReadMode::kPublished:
      return plan::PlanMode::kPublished;
    case ReadMode::kWholeObjects:
      return plan::PlanMode::kWholeObjects;
  }
  return plan::PlanMode::kPlanned;
}

Result<LayerStream> open_stream(const StreamPorts& ports, const StreamOptions& options,
                                std::shared_ptr<const ChunkSource> source, ReadRequest request,
                                const plan::ReadPlan& plan, StreamEvents events) {
  auto task = StreamTask::create(ports, options, std::move(source), std::move(request), plan,
                                 std::move(events));
  if (!task) return std::unexpected(std::move(task.error()));
  return LayerStream(std::make_shared<LayerStream::Impl>(std::move(*task)));
}

}  // namespace stream
}  // namespace objectcache
