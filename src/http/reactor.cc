#include "http/reactor.h"

#include <pthread.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cassert>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http/asio.h"

namespace objectcache::http {

namespace asio = boost::asio;

// Tasks wait in two queues of our own, one for the loop's thread (no lock) and one for all others;
// Asio is told only when a queue turns non-empty. So a post costs a push, and a burst of posts
// costs one wake-up. All timers share one Asio timer that is set to the earliest of them; it is
// left alone when that one is cancelled, as most timers are: a wake-up for nothing is cheaper than
// two system calls for each deadline that is met.
struct Reactor::Impl {
  explicit Impl(Options o) : options(std::move(o)) {}

  Options options;
  std::optional<asio::io_context> context{std::in_place, 1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  std::latch owner_known{1};
  std::atomic<std::thread::id> owner;
  std::thread thread;
  std::mutex stop_mutex;
  bool stopped = false;

  // Owner thread.
  std::vector<Task> local;
  bool local_scheduled = false;
  std::vector<Task> draining;
  std::size_t draining_next = 0;
  std::optional<asio::steady_timer> timer{*context};
  TimePoint timer_at = TimePoint::max();
  std::uint64_t last_id = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, Task> timers;
  std::unordered_map<std::uint64_t, TimePoint> timer_times;

  // Any thread.
  std::mutex mutex;
  std::vector<Task> remote;
  bool remote_scheduled = false;

  bool closed = false;  // Set by ~Reactor: tasks are only kept, Asio is not told any more.

  void run();
  void drain_local();
  void drain_remote();
  void run_batch();
  void set_timer();
  void run_timers();
  void destroy_tasks();
};

void Reactor::Impl::run() {
  pthread_setname_np(pthread_self(), options.thread_name.substr(0, 15).c_str());
  owner_known.wait();
  context->run();
}

void Reactor::Impl::run_batch() {
  // stop() takes effect between two tasks; the rest stays in `draining` for ~Reactor.
  while (draining_next < draining.size() && !context->stopped()) {
    Task task = std::move(draining[draining_next++]);
    task();
  }
  if (draining_next == draining.size()) {
    draining.clear();
    draining_next = 0;
  }
}

// Tasks that a batch posts wait for the next turn, so that sockets are served in between.
void Reactor::Impl::drain_local() {
  local_scheduled = false;
  draining.swap(local);
  run_batch();
}

void Reactor::Impl::drain_remote() {
  {
    const std::lock_guard lock(mutex);
    remote_scheduled = false;
    draining.swap(remote);
  }
  run_batch();
}

void Reactor::Impl::set_timer() {
  if (timers.empty()) return;
  const TimePoint earliest = timers.begin()->first.first;
  if (earliest >= timer_at) return;
  if (closed) return;
  timer_at = earliest;
  timer->expires_at(earliest);
  timer->async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    timer_at = TimePoint::max();
    run_timers();
    set_timer();
  });
}

void Reactor::Impl::run_timers() {
  const TimePoint now = std::chrono::steady_clock::now();
  // A timer set by one of these tasks waits for the next turn, even if it is due already.
  const std::uint64_t newest = last_id;
  auto it = timers.begin();
  while (it != timers.end() && it->first.first <= now && !context->stopped()) {
    if (it->first.second > newest) {
      ++it;
      continue;
    }
    auto node = timers.extract(it);
    timer_times.erase(node.key().second);
    node.mapped()();
    it = timers.begin();
  }
}

void Reactor::Impl::destroy_tasks() {
  // Destroying a task may post or set a timer; a few rounds empty whatever reasonable code leaves.
  for (int round = 0; round < 1000; ++round) {
    std::vector<Task> tasks;
    {
      const std::lock_guard lock(mutex);
      tasks.swap(remote);
    }
    std::vector<Task> more;
    more.swap(local);
    std::vector<Task> rest;
    rest.swap(draining);
    draining_next = 0;
    auto due = std::move(timers);
    timers.clear();
    timer_times.clear();
    if (tasks.empty() && more.empty() && rest.empty() && due.empty()) return;
  }
}

Result<std::unique_ptr<Reactor>> Reactor::start(Options options) {
  try {
    auto impl = std::make_unique<Impl>(std::move(options));
    impl->work.emplace(impl->context->get_executor());
    std::unique_ptr<Reactor> reactor(new Reactor(std::move(impl)));
    Impl& self = *reactor->impl_;
    self.thread = std::thread([&self] { self.run(); });
    self.owner.store(self.thread.get_id());
    self.owner_known.count_down();
    return reactor;
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kLimitExceeded, error.what(), "start reactor");
  }
}

Reactor::Reactor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Reactor::~Reactor() {
  stop();
  Impl& self = *impl_;
  self.owner.store(std::this_thread::get_id());
  self.closed = true;
  // Asio's own handlers hold connections, whose destructors may still call this loop: the queues
  // outlive the context.
  self.destroy_tasks();
  self.timer.reset();
  self.work.reset();
  self.context.reset();
  self.destroy_tasks();
}

void Reactor::stop() {
  const std::lock_guard lock(impl_->stop_mutex);
  if (impl_->stopped) return;
  impl_->stopped = true;
  assert(!is_owner_thread() && "a reactor cannot join itself");
  impl_->context->stop();
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->owner.store(std::this_thread::get_id());
}

TimePoint Reactor::now() const { return std::chrono::steady_clock::now(); }

bool Reactor::is_owner_thread() const { return impl_->owner.load() == std::this_thread::get_id(); }

void Reactor::post(Task task) {
  Impl& self = *impl_;
  if (is_owner_thread()) {
    self.local.push_back(std::move(task));
    if (self.closed || std::exchange(self.local_scheduled, true)) return;
    asio::post(*self.context, [&self] { self.drain_local(); });
    return;
  }
  {
    const std::lock_guard lock(self.mutex);
    self.remote.push_back(std::move(task));
    if (std::exchange(self.remote_scheduled, true)) return;
  }
  asio::post(*self.context, [&self] { self.drain_remote(); });
}

TimerId Reactor::run_at(TimePoint when, Task task) {
  assert(is_owner_thread());
  Impl& self = *impl_;
  const std::uint64_t id = ++self.last_id;
  self.timers.emplace(std::pair{when, id}, std::move(task));
  self.timer_times.emplace(id, when);
  self.set_timer();
  return static_cast<TimerId>(id);
}

bool Reactor::cancel_timer(TimerId timer) {
  assert(is_owner_thread());
  Impl& self = *impl_;
  const auto found = self.timer_times.find(static_cast<std::uint64_t>(timer));
  if (found == self.timer_times.end()) return false;
  const auto it = self.timers.find({found->second, found->first});
  self.timer_times.erase(found);
  const auto node = self.timers.extract(it);  // Its destructor may call back; the maps are settled.
  return true;
}

boost::asio::io_context& ReactorAccess::context(Reactor& reactor) {
  return *reactor.impl_->context;
}

}  // namespace objectcache::http
