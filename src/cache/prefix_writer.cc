#include "cache/prefix_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "digest/crc32c.h"

namespace objectcache {
namespace {

/// Copied and summed up piece by piece, so that the sum finds the bytes in the first-level cache.
constexpr std::size_t kCopyPieceBytes = 16 * 1024;

}  // namespace

PrefixWriter::Impl::Impl(Parts parts, std::span<const UnitKey> unit_keys, std::uint32_t first_chunk)
    : parts_(std::move(parts)),
      unit_keys_(unit_keys.begin(),
                 unit_keys.end() -
                     static_cast<std::ptrdiff_t>(unit_keys.size() % parts_.space->layout.units())),
      first_chunk_(first_chunk),
      chunks_(unit_keys_.size() / parts_.space->layout.units()),
      end_(static_cast<std::uint32_t>(chunks_.size())) {
  buffer_bytes_ = layout().header_bytes();
  for (std::uint32_t l = 0; l < layout().layers(); ++l) {
    slice_offsets_.push_back(buffer_bytes_);
    buffer_bytes_ += layout().slice_bytes(l);
  }
}

PrefixWriter::Impl::~Impl() = default;

ChunkKey PrefixWriter::Impl::key(std::uint32_t chunk) const {
  return chunk_key_of(unit_keys_[(std::size_t{chunk} + 1) * layout().units() - 1]);
}

bool PrefixWriter::Impl::wants(std::uint32_t chunk) noexcept {
  if (chunk < first_chunk_ || chunk >= end_ || finished_) return false;
  Chunk& at = chunks_[chunk];
  const State state = at.state;
  if (state == State::kCollecting) return true;
  if (state != State::kIdle) return false;
  if (!parts_.publisher.is_stored(parts_.space->id(key(chunk)))) return true;
  const std::scoped_lock lock(at.mutex);
  if (at.state != State::kIdle) return at.state == State::kCollecting;
  at.state = State::kPresent;
  ++parts_.counters.chunks_already_present;
  return false;
}

Result<void> PrefixWriter::Impl::check(std::uint32_t layer, std::uint32_t chunk,
                                       std::uint32_t first_unit, std::uint32_t unit_count,
                                       std::span<const ConstSegment> segments) const {
  const auto refuse = [&](std::string message) {
    return fail(ErrorCode::kInvalidArgument, std::move(message), "write slice",
                fmt::format("layer {} of chunk {}", layer, chunk));
  };
  if (finished_) return refuse("the writer has finished");
  if (layer >= layout().layers()) {
    return refuse(fmt::format("there are {} layers", layout().layers()));
  }
  if (chunk >= chunks_.size()) {
    return refuse(fmt::format("the prefix has {} full chunks", chunks_.size()));
  }
  if (first_unit >= layout().units() || unit_count > layout().units() - first_unit) {
    return refuse(fmt::format("unit {}: a chunk has {} units", first_unit, layout().units()));
  }
  std::uint64_t given = 0;
  for (const ConstSegment& segment : segments) given += segment.size();
  const std::uint64_t wanted = unit_count * layout().unit_bytes(layer);
  if (given != wanted) return refuse(fmt::format("{} bytes given, {} wanted", given, wanted));
  return {};
}

Result<void> PrefixWriter::Impl::write(std::uint32_t layer, std::uint32_t chunk,
                                       std::uint32_t first_unit, std::uint32_t unit_count,
                                       std::span<const ConstSegment> segments) {
  if (auto ok = check(layer, chunk, first_unit, unit_count, segments); !ok) return ok;
  if (!wants(chunk)) return {};
  const std::shared_ptr<Collected> to = collect(chunk);
  if (to == nullptr) return {};
  const std::size_t first = std::size_t{layer} * layout().units() + first_unit;
  for (std::uint32_t i = 0; i < unit_count; ++i) {
    if (to->taken[first + i].exchange(1) == 0) continue;
    while (i-- > 0) to->taken[first + i] = 0;
    return fail(ErrorCode::kInvalidArgument, "this slice was written before", "write slice",
                fmt::format("layer {} of chunk {}", layer, chunk));
  }
  copy(*to, layer, first_unit, unit_count, segments);
  if (to->missing.fetch_sub(unit_count, std::memory_order_acq_rel) == unit_count) complete(chunk);
  return {};
}

void PrefixWriter::Impl::copy(Collected& to, std::uint32_t layer, std::uint32_t first_unit,
                              std::uint32_t unit_count,
                              std::span<const ConstSegment> segments) const {
  const std::uint64_t unit_bytes = layout().unit_bytes(layer);
  std::byte* out = to.buffer->data() + slice_offsets_[layer] + first_unit * unit_bytes;
  auto segment = segments.begin();
  std::size_t used = 0;  // Of *segment.
  for (std::uint32_t i = 0; i < unit_count; ++i) {
    std::uint32_t crc = 0;
    for (std::uint64_t left = unit_bytes; left > 0;) {
      while (used == segment->size()) {
        ++segment;
        used = 0;
      }
      const std::size_t piece = static_cast<std::size_t>(
          std::min<std::uint64_t>({left, segment->size() - used, kCopyPieceBytes}));
      std::memcpy(out, segment->data() + used, piece);
      crc = digest::crc32c_extend(crc, {out, piece});
      out += piece;
      used += piece;
      left -= piece;
    }
    to.records[std::size_t{layer} * layout().units() + first_unit + i] = {
        .stored_bytes = static_cast<std::uint32_t>(unit_bytes), .crc32c = crc};
  }
}

// The memory of the chunk; empty once the chunk is not wanted any more.
std::shared_ptr<PrefixWriter::Impl::Collected> PrefixWriter::Impl::collect(std::uint32_t chunk) {
  Chunk& at = chunks_[chunk];
  {
    const std::scoped_lock lock(at.mutex);
    if (at.state == State::kCollecting) return at.collected;
    if (at.state != State::kIdle) return nullptr;
    at.collected = allocate(chunk);
    if (at.collected != nullptr) {
      at.state = State::kCollecting;
      return at.collected;
    }
  }
  // No room. What lies behind this chunk is worth nothing without it, so it gives way first.
  while (drop_last_behind(chunk)) {
    const std::scoped_lock lock(at.mutex);
    if (at.state == State::kCollecting) return at.collected;
    if (at.state != State::kIdle) return nullptr;
    at.collected = allocate(chunk);
    if (at.collected == nullptr) continue;
    at.state = State::kCollecting;
    return at.collected;
  }
  drop_from(chunk);
  return nullptr;
}

std::shared_ptr<PrefixWriter::Impl::Collected> PrefixWriter::Impl::allocate(std::uint32_t chunk) {
  if (chunk >= end_) return nullptr;
  auto buffer = parts_.pool->acquire(buffer_bytes_);
  if (buffer == nullptr) return nullptr;
  auto made = std::make_shared<Collected>();
  const std::size_t pairs = std::size_t{layout().layers()} * layout().units();
  made->buffer = std::move(buffer);
  made->records.resize(pairs);
  made->taken = std::vector<std::atomic<std::uint8_t>>(pairs);
  made->missing = pairs;
  return made;
}

void PrefixWriter::Impl::complete(std::uint32_t chunk) {
  Chunk& at = chunks_[chunk];
  {
    const std::scoped_lock lock(at.mutex);
    if (at.state != State::kCollecting) return;
    at.state = State::kQueued;
    set_pending(+1);
  }
  parts_.publisher.submit(shared_from_this(), chunk, parts_.space->id(key(chunk)));
}

bool PrefixWriter::Impl::drop_last_behind(std::uint32_t chunk) {
  for (std::uint32_t i = end_; i-- > chunk + 1;) {
    const State state = chunks_[i].state;
    if (state != State::kCollecting && state != State::kQueued) continue;
    drop_from(i);
    return true;
  }
  return false;
}

void PrefixWriter::Impl::drop_from(std::uint32_t chunk) {
  std::uint32_t end = end_;
  while (chunk < end && !end_.compare_exchange_weak(end, chunk)) {
  }
  for (std::uint32_t i = std::max(chunk, first_chunk_); i < chunks_.size(); ++i) {
    Chunk& at = chunks_[i];
    const std::scoped_lock lock(at.mutex);
    const State state = at.state;
    if (state != State::kIdle && state != State::kCollecting && state != State::kQueued) continue;
    at.state = State::kDropped;
    at.collected.reset();
    ++parts_.counters.chunks_dropped;
    if (state == State::kQueued) set_pending(-1);
  }
}

void PrefixWriter::Impl::abandon(bool complete_ones_too) noexcept {
  finished_ = true;
  for (std::uint32_t i = first_chunk_; i < chunks_.size(); ++i) {
    Chunk& at = chunks_[i];
    const std::scoped_lock lock(at.mutex);
    const State state = at.state;
    if (state != State::kIdle && state != State::kCollecting &&
        (state != State::kQueued || !complete_ones_too)) {
      continue;
    }
    at.state = State::kAbandoned;
    at.collected.reset();
    if (state == State::kQueued) set_pending(-1);
  }
}

Result<WriteSummary> PrefixWriter::Impl::finish(TimePoint deadline) {
  if (parts_.publisher.on_own_thread()) {
    return fail(ErrorCode::kInvalidArgument, "a thread of the cache itself must not wait for it",
                "finish writer");
  }
  abandon(false);
  {
    std::unique_lock lock(mutex_);
    if (!idle_.wait_until(lock, deadline, [this] { return pending_ == 0; })) {
      return fail(ErrorCode::kDeadlineExceeded,
                  fmt::format("{} chunks are still being published; they go on", pending_),
                  "finish writer");
    }
  }
  return summary();
}

WriteSummary PrefixWriter::Impl::summary() const {
  WriteSummary out;
  for (std::uint32_t i = first_chunk_; i < chunks_.size(); ++i) {
    switch (chunks_[i].state.load()) {
      case State::kPublished:
        ++out.published;
        break;
      case State::kPresent:
        ++out.already_present;
        break;
      case State::kDropped:
        ++out.dropped;
        break;
      case State::kAbandoned:
        ++out.abandoned;
        break;
      case State::kFailed:
        ++out.failed;
        break;
      case State::kIdle:
      case State::kCollecting:
      case State::kQueued:
      case State::kSending:
        break;
    }
  }
  const std::scoped_lock lock(mutex_);
  out.bytes_published = bytes_published_;
  if (first_error_) out.first_error.push_back(*first_error_);
  return out;
}

std::optional<cache::PublishTask::Job> PrefixWriter::Impl::take(std::uint32_t chunk) {
  Chunk& at = chunks_[chunk];
  const std::scoped_lock lock(at.mutex);
  if (at.state != State::kQueued) return std::nullopt;
  at.state = State::kSending;
  const std::shared_ptr<Collected> from = std::move(at.collected);
  const auto units =
      unit_keys_.begin() + static_cast<std::ptrdiff_t>(std::size_t{chunk} * layout().units());
  return cache::PublishTask::Job{.space = parts_.space,
                                 .key = key(chunk),
                                 .parent = chunk == 0 ? ChunkKey{} : key(chunk - 1),
                                 .unit_keys = {units, units + layout().units()},
                                 .records = std::move(from->records),
                                 .buffer = std::move(from->buffer),
                                 .mode = store::PutMode::kIfAbsent};
}

void PrefixWriter::Impl::ended(std::uint32_t chunk, Result<cache::PublishTask::Outcome> result) {
  const bool failed = !result;
  {
    Chunk& at = chunks_[chunk];
    const std::scoped_lock lock(at.mutex);
    // A refused chunk was never taken: it may have been dropped meanwhile, and counted then.
    if (at.state != State::kSending && at.state != State::kQueued) return;
    at.collected.reset();
    if (failed) {
      at.state = State::kFailed;
    } else if (result->already_present) {
      at.state = State::kPresent;
      ++parts_.counters.chunks_already_present;
    } else {
      at.state = State::kPublished;
      ++parts_.counters.chunks_published;
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    if (failed && !first_error_) first_error_ = result.error();
    if (!failed) bytes_published_ += result->bytes_sent;
  }
  // What comes behind a chunk that is missing would never be found.
  if (failed && chunk + 1 < chunks_.size()) drop_from(chunk + 1);
  set_pending(-1);
}

void PrefixWriter::Impl::set_pending(int change) {
  const std::scoped_lock lock(mutex_);
  pending_ += change;
  if (pending_ == 0) idle_.notify_all();
}

// ---------------------------------------------------------------- the public handle

PrefixWriter::PrefixWriter(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
PrefixWriter::PrefixWriter(PrefixWriter&&) noexcept = default;
PrefixWriter& PrefixWriter::operator=(PrefixWriter&& other) noexcept {
  if (this != &other) {
    if (impl_) impl_->abandon(false);
    impl_ = std::move(other.impl_);
  }
  return *this;
}
PrefixWriter::~PrefixWriter() {
  if (impl_) impl_->abandon(false);
}

bool PrefixWriter::wants(std::uint32_t chunk) const noexcept { return impl_->wants(chunk); }

Result<void> PrefixWriter::write_slice(std::uint32_t layer, std::uint32_t chunk,
                                       std::span<const ConstSegment> segments) {
  return impl_->write(layer, chunk, 0, impl_->units_per_chunk(), segments);
}

Result<void> PrefixWriter::write_unit_slice(std::uint32_t layer, std::uint32_t chunk,
                                            std::uint32_t unit,
                                            std::span<const ConstSegment> segments) {
  return impl_->write(layer, chunk, unit, 1, segments);
}

Result<WriteSummary> PrefixWriter::finish(TimePoint deadline) { return impl_->finish(deadline); }

void PrefixWriter::abandon() noexcept { impl_->abandon(true); }

}  // namespace objectcache
