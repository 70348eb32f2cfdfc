#include "cache/match_task.h"

#include <algorithm>
#include <utility>

namespace objectcache::cache {

MatchTask::MatchTask(const Parts& parts, Question question, Done done)
    : parts_(parts), question_(std::move(question)), done_(std::move(done)) {}

std::shared_ptr<MatchTask> MatchTask::start(const Parts& parts, Question question, Done done) {
  std::shared_ptr<MatchTask> task(new MatchTask(parts, std::move(question), std::move(done)));
  parts.loop.post([task] { task->begin(); });
  return task;
}

void MatchTask::begin() {
  if (!done_) return;  // Cancelled before it began.
  timer_ = parts_.loop.run_at(question_.deadline, [self = shared_from_this()] {
    self->timer_ = TimerId::kNone;
    self->match_.chunks = self->known_by_now();
    self->end(self->match_);
  });
  scan_memory();
}

// The last chunk that is remembered as present vouches for those before it, as it does within one
// search; only where memory says otherwise, or nothing, is there anything to ask. A chunk that was
// lost is asked about alone, and this goes on with the answer (on_head).
void MatchTask::scan_memory() {
  const TimePoint now = parts_.loop.now();
  for (; count_ < question_.chunks.size(); ++count_) {
    if (parts_.bad_objects.contains(id(count_), now)) break;
    const PresenceCache::Answer known = parts_.presence.look_up(id(count_), now);
    if (known == PresenceCache::Answer::kAbsent) break;
    if (known == PresenceCache::Answer::kPresent) {
      at_least_ = count_ + 1;
    } else if (parts_.lost.contains(id(count_), now)) {
      ++match_.rounds;
      return ask(count_);
    }
  }
  start_search();
}

void MatchTask::start_search() {
  search_.emplace(plan::PrefixSearch::Options{.count = count_,
                                              .probes_max = question_.probes_max,
                                              .at_least = at_least_,
                                              .hint = question_.hint});
  next_round();
}

// Rounds that the cache answers alone follow one another without recursion: report() only keeps
// books while this runs.
void MatchTask::next_round() {
  while (done_ && !search_->done()) {
    const std::vector<std::uint32_t> probes = search_->next_probes();
    if (probes.empty()) return;  // Answers are outstanding.
    const std::uint32_t sent_before = match_.probes;
    for (const std::uint32_t index : probes) probe(index);
    if (match_.probes != sent_before) ++match_.rounds;
  }
  if (!done_) return;
  match_.chunks = search_->result();
  if (match_.chunks == 0 && first_error_ && first_error_->code != ErrorCode::kDeadlineExceeded) {
    return end(std::unexpected(std::move(*first_error_)));
  }
  end(match_);
}

void MatchTask::probe(std::uint32_t index) {
  const TimePoint now = parts_.loop.now();
  const PresenceCache::Answer known = parts_.presence.look_up(id(index), now);
  if (known == PresenceCache::Answer::kAbsent) return report(index, false);
  if (known == PresenceCache::Answer::kPresent) {
    return report(index, !parts_.bad_objects.contains(id(index), now));
  }
  ask(index);
}

void MatchTask::ask(std::uint32_t index) {
  ++match_.probes;
  parts_.slots.acquire([self = shared_from_this(), index] { self->send(index); });
}

void MatchTask::send(std::uint32_t index) {
  if (!done_ || (search_ && search_->done())) return parts_.slots.release();
  running_[index] = parts_.store.head(
      parts_.loop, question_.space->object(question_.chunks[index]), question_.deadline,
      [self = shared_from_this(), index](Result<std::optional<store::ObjectInfo>> found) {
        self->parts_.slots.release();
        self->running_.erase(index);
        self->on_head(index, std::move(found));
      });
}

// Also comes after the end: what is learned late still serves the next match.
void MatchTask::on_head(std::uint32_t index, Result<std::optional<store::ObjectInfo>> found) {
  bool present = false;
  if (found) {
    present = judge(index, *found);
  } else if (done_ && found.error().code != ErrorCode::kCancelled) {
    if (!first_error_) first_error_ = std::move(found.error());
  }
  if (!done_) return;
  if (search_) {
    report(index, present);
    return next_round();
  }
  // The answer about a lost chunk: it is back, or the prefix ends before it.
  if (!present) return start_search();
  parts_.lost.forget(id(index));
  at_least_ = ++count_;
  scan_memory();
}

bool MatchTask::judge(std::uint32_t index, const std::optional<store::ObjectInfo>& info) {
  const TimePoint now = parts_.loop.now();
  if (!info) {
    parts_.presence.remember(id(index), false, now);
    return false;
  }
  if (info->size_bytes != question_.space->layout.object_bytes(0)) {
    ++parts_.counters.corrupt_found;
    parts_.presence.forget(id(index));
    parts_.bad_objects.add(id(index), now);
    return false;
  }
  parts_.presence.remember(id(index), true, now);
  return !parts_.bad_objects.contains(id(index), now);
}

void MatchTask::report(std::uint32_t index, bool present) {
  answers_[index] = present;
  search_->report(index, present);
}

std::uint32_t MatchTask::known_by_now() const {
  std::uint32_t known = at_least_;
  for (const auto& [index, present] : answers_) {
    if (!present) break;
    known = std::max(known, index + 1);
  }
  return known;
}

void MatchTask::cancel() {
  if (!done_) return;
  // Later, as every completion: the caller may hold locks here.
  parts_.loop.post([self = shared_from_this()] {
    self->end(fail(ErrorCode::kCancelled, "the match was cancelled", "match"));
  });
}

void MatchTask::end(Result<Match> result) {
  if (!done_) return;
  auto done = std::move(done_);
  done_ = nullptr;
  if (timer_ != TimerId::kNone) parts_.loop.cancel_timer(timer_);
  for (auto& [index, operation] : running_) operation->cancel();
  done(std::move(result));
}

}  // namespace objectcache::cache
