#pragma once

#include <memory>

#include "objectcache/layer_stream.h"
#include "stream/stream_task.h"

namespace objectcache {

class LayerStream::Impl {
 public:
  explicit Impl(std::shared_ptr<stream::StreamTask> task) : task_(std::move(task)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    task_->request_cancel();
    // On its own loop nobody else could bring the end about.
    if (!task_->loop().is_owner_thread()) {
      static_cast<void>(task_->state()->wait_ended(std::nullopt));
    }
  }
  [[nodiscard]] stream::StreamTask& task() const { return *task_; }
  [[nodiscard]] stream::StreamState& state() const { return *task_->state(); }

 private:
  std::shared_ptr<stream::StreamTask> task_;
};

}  // namespace objectcache
