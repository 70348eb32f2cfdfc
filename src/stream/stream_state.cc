#include "stream/stream_state.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace objectcache::stream {
namespace {

// Everything that can fail about a signal leaves the descriptor readable, which is all it is for.
void write_signal(int fd) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
}

}  // namespace

StreamState::StreamState(std::uint32_t layers, TimePoint opened)
    : layers_(layers), opened_(opened), layer_waited_(layers) {
  layer_ready_.reserve(layers);
}

StreamState::~StreamState() {
  if (event_fd_ >= 0) ::close(event_fd_);
}

Result<void> StreamState::wait_ready(std::uint32_t layer, TimePoint deadline) {
  if (layer < ready_layers()) return {};
  if (layer >= layers_) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no layer {}: the stream has {}", layer, layers_), "wait");
  }
  const TimePoint from = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const auto decided = [&] { return layer < ready_layers() || failure_; };
  const bool in_time = changed_.wait_until(lock, deadline, decided);
  layer_waited_[layer] += std::chrono::steady_clock::now() - from;
  if (layer < ready_layers()) return {};
  if (in_time) return std::unexpected(failure_->error);
  return fail(ErrorCode::kDeadlineExceeded,
              fmt::format("layer {} is not there yet ({} of {} are); the stream goes on", layer,
                          ready_layers(), layers_),
              "wait");
}

bool StreamState::wait_ended(std::optional<TimePoint> deadline) {
  std::unique_lock lock(mutex_);
  const auto is_ended = [&] { return ended(); };
  if (deadline) return changed_.wait_until(lock, *deadline, is_ended);
  changed_.wait(lock, is_ended);
  return true;
}

std::optional<StreamFailure> StreamState::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

int StreamState::event_fd() const noexcept {
  const std::lock_guard lock(mutex_);
  if (event_fd_ < 0) {
    event_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    // Whatever happened before the first question counts as a change.
    if (event_fd_ >= 0 && (ready_layers() > 0 || failure_ || ended())) write_signal(event_fd_);
  }
  return event_fd_;
}

StreamStats StreamState::stats() const {
  StreamStats stats;
  stats.requests = requests_.load(std::memory_order_relaxed);
  stats.bytes = bytes_.load(std::memory_order_relaxed);
  stats.rereads = rereads_.load(std::memory_order_relaxed);
  stats.first_byte = Duration(first_byte_ns_.load(std::memory_order_relaxed));
  stats.staging_bytes_peak = scratch_peak_.load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  stats.layer_ready = layer_ready_;
  stats.layer_waited = layer_waited_;
  return stats;
}

void StreamState::count_request(bool is_reread) noexcept {
  requests_.fetch_add(1, std::memory_order_relaxed);
  if (is_reread) rereads_.fetch_add(1, std::memory_order_relaxed);
}

void StreamState::count_bytes(std::uint64_t bytes) noexcept {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void StreamState::count_scratch(std::uint64_t taken, std::uint64_t given_back) noexcept {
  scratch_ += taken;
  scratch_ -= given_back;
  if (scratch_ > scratch_peak_.load(std::memory_order_relaxed)) {
    scratch_peak_.store(scratch_, std::memory_order_relaxed);
  }
}

void StreamState::first_byte_at(TimePoint now) noexcept {
  first_byte_ns_.store(Duration(now - opened_).count(), std::memory_order_relaxed);
}

void StreamState::publish_ready(std::uint32_t ready, TimePoint now) {
  {
    const std::lock_guard lock(mutex_);
    layer_ready_.resize(ready, now - opened_);
    // Under the lock, so that no waiter can miss it between its look and its sleep.
    ready_.store(ready, std::memory_order_release);
  }
  signal();
}

void StreamState::publish_failure(StreamFailure failure) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
  }
  signal();
}

void StreamState::publish_ended() {
  {
    const std::lock_guard lock(mutex_);
    ended_.store(true, std::memory_order_release);
  }
  signal();
}

void StreamState::signal() noexcept {
  changed_.notify_all();
  const std::lock_guard lock(mutex_);
  if (event_fd_ >= 0) write_signal(event_fd_);
}

}  // namespace objectcache::stream
