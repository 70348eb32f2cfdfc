#include "cache/publisher.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace objectcache::cache {

Publisher::Publisher(Parts parts, Options options) : parts_(std::move(parts)), options_(options) {}

Publisher::~Publisher() = default;

bool Publisher::is_stored(const ChunkId& id) {
  const TimePoint now = parts_.loops.front()->now();
  return parts_.presence.look_up(id, now) == PresenceCache::Answer::kPresent &&
         !parts_.bad_objects.contains(id, now);
}

void Publisher::submit(std::shared_ptr<PublishSource> source, std::uint32_t chunk,
                       const ChunkId& id) {
  Entry entry{.source = std::move(source), .chunk = chunk, .id = id};
  {
    const std::scoped_lock lock(mutex_);
    if (!shut_down_) queue_.push_back(std::move(entry));
  }
  if (entry.source != nullptr) return refuse(entry);
  pump();
}

void Publisher::refuse(const Entry& entry) {
  entry.source->ended(entry.chunk, fail(ErrorCode::kCancelled, "the cache was closed", "publish"));
}

// Starts what may start. Sources are called without the lock: they have locks of their own.
void Publisher::pump() {
  for (;;) {
    Entry entry;
    std::shared_ptr<InFlight> flight;
    {
      const std::scoped_lock lock(mutex_);
      if (shut_down_ || queue_.empty() || in_flight_.size() >= options_.writes_in_flight_max) {
        return;
      }
      entry = std::move(queue_.front());
      queue_.pop_front();
      const auto same = in_flight_.find(entry.id);
      if (same != in_flight_.end()) {
        same->second->parked.push_back(std::move(entry));
        continue;
      }
      flight = std::make_shared<InFlight>();
      flight->loop = parts_.loops[next_loop_++ % parts_.loops.size()];
      in_flight_.emplace(entry.id, flight);
      ++running_;
    }
    std::optional<PublishTask::Job> job = entry.source->take(entry.chunk);
    if (job.has_value() && !is_stored(entry.id)) {
      const TimePoint now = parts_.loops.front()->now();
      if (parts_.bad_objects.contains(entry.id, now)) job->mode = store::PutMode::kReplace;
      start(std::move(entry), std::move(*job), std::move(flight));
      continue;
    }
    if (job.has_value()) {
      job.reset();  // Its memory is free before the source hears of it.
      entry.source->ended(entry.chunk, PublishTask::Outcome{.already_present = true});
    }
    const std::scoped_lock lock(mutex_);
    const auto mine = in_flight_.extract(entry.id);
    auto& parked = mine.mapped()->parked;
    queue_.insert(queue_.begin(), std::make_move_iterator(parked.begin()),
                  std::make_move_iterator(parked.end()));
    if (--running_ == 0) idle_.notify_all();
  }
}

void Publisher::start(Entry entry, PublishTask::Job job, std::shared_ptr<InFlight> flight) {
  EventLoop& loop = *flight->loop;
  loop.post([this, entry = std::move(entry), job = std::move(job),
             flight = std::move(flight)]() mutable {
    EventLoop& here = *flight->loop;
    flight->task = PublishTask::start(here, parts_.store, parts_.wall_clock, std::move(job),
                                      here.now() + options_.put_timeout,
                                      [this, entry, flight](Result<PublishTask::Outcome> result) {
                                        flight->task.reset();
                                        on_ended(entry, std::move(result));
                                      });
    bool stop = false;
    {
      const std::scoped_lock lock(mutex_);
      stop = shut_down_;
    }
    if (stop) flight->task->cancel();
  });
}

void Publisher::on_ended(const Entry& entry, Result<PublishTask::Outcome> result) {
  if (result) {
    parts_.bad_objects.forget(entry.id);
    parts_.presence.remember(entry.id, true, parts_.loops.front()->now());
  } else {
    parts_.presence.forget(entry.id);
  }
  entry.source->ended(entry.chunk, std::move(result));
  std::vector<Entry> refused;
  {
    const std::scoped_lock lock(mutex_);
    auto parked = std::move(in_flight_.extract(entry.id).mapped()->parked);
    if (shut_down_) {
      refused = std::move(parked);
    } else {
      queue_.insert(queue_.begin(), std::make_move_iterator(parked.begin()),
                    std::make_move_iterator(parked.end()));
    }
  }
  for (const Entry& each : refused) refuse(each);
  pump();
  // Last: from here on the owner may end.
  const std::scoped_lock lock(mutex_);
  if (--running_ == 0) idle_.notify_all();
}

void Publisher::shut_down() {
  std::deque<Entry> refused;
  std::vector<std::shared_ptr<InFlight>> flights;
  {
    const std::scoped_lock lock(mutex_);
    if (shut_down_) return;
    shut_down_ = true;
    refused.swap(queue_);
    for (auto& [id, flight] : in_flight_) flights.push_back(flight);
  }
  for (const Entry& entry : refused) refuse(entry);
  for (const auto& flight : flights) {
    flight->loop->post([flight] {
      if (flight->task) flight->task->cancel();
    });
  }
}

bool Publisher::wait_idle(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  return idle_.wait_until(lock, deadline, [this] { return running_ == 0; });
}

bool Publisher::on_own_thread() const {
  {
    // Nothing runs any more, and a stopped loop counts as owned by whoever stopped it.
    const std::scoped_lock lock(mutex_);
    if (shut_down_ && running_ == 0) return false;
  }
  return std::any_of(parts_.loops.begin(), parts_.loops.end(),
                     [](const EventLoop* loop) { return loop->is_owner_thread(); });
}

std::size_t Publisher::queued() const {
  const std::scoped_lock lock(mutex_);
  return queue_.size();
}

}  // namespace objectcache::cache
