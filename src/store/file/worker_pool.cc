#include "store/file/worker_pool.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace objectcache::store {

struct WorkerPool::State {
  explicit State(Options o) : options(o) {}
  static void run(std::shared_ptr<State> self);

  const Options options;
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable ended;
  std::deque<Job> queue;
  std::size_t threads = 0;
  std::size_t idle = 0;
  bool stopping = false;
};

void WorkerPool::State::run(std::shared_ptr<State> self) {
  std::unique_lock lock(self->mutex);
  while (true) {
    ++self->idle;
    self->work.wait(lock, [&] { return self->stopping || !self->queue.empty(); });
    --self->idle;
    if (self->stopping) break;
    {
      Job job = std::move(self->queue.front());
      self->queue.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
  --self->threads;
  self->ended.notify_all();
}

WorkerPool::WorkerPool(Options options) : state_(std::make_shared<State>(options)) {}

WorkerPool::~WorkerPool() {
  std::deque<Job> dropped;  // Destroyed without the mutex.
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  dropped.swap(state_->queue);
  state_->work.notify_all();
  state_->ended.wait_for(lock, state_->options.patience, [&] { return state_->threads == 0; });
  lock.unlock();
}

bool WorkerPool::submit(Job job) {
  const std::lock_guard lock(state_->mutex);
  if (state_->queue.size() >= state_->options.queued_max) return false;
  if (state_->idle <= state_->queue.size() && state_->threads < state_->options.threads_max) {
    try {
      std::thread(&State::run, state_).detach();
      ++state_->threads;
    } catch (const std::system_error&) {
      if (state_->threads == 0) return false;
    }
  }
  state_->queue.push_back(std::move(job));
  state_->work.notify_one();
  return true;
}

}  // namespace objectcache::store
