#include "cache/prove_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format/chunk_header.h"

namespace objectcache::cache {

ProveTask::ProveTask(const Parts& parts, Question question, Done done)
    : parts_(parts),
      question_(std::move(question)),
      done_(std::move(done)),
      end_(static_cast<std::uint32_t>(question_.chunks.size())),
      good_(question_.chunks.size()) {}

std::shared_ptr<ProveTask> ProveTask::start(const Parts& parts, Question question, Done done) {
  std::shared_ptr<ProveTask> task(new ProveTask(parts, std::move(question), std::move(done)));
  parts.loop.post([task] {
    task->timer_ = task->parts_.loop.run_at(task->question_.deadline, [task] {
      task->timer_ = TimerId::kNone;
      task->cancel();
      task->answer_.error =
          fail(ErrorCode::kDeadlineExceeded, "the deadline passed first", "prove").error();
    });
    task->ask_more();
    task->maybe_end();
  });
  return task;
}

void ProveTask::ask_more() {
  while (!stopped_ && next_ < end_ && outstanding_ < question_.requests_max) {
    ++outstanding_;
    parts_.slots.acquire(
        [self = shared_from_this(), index = next_++] { self->send(index, false); });
  }
}

void ProveTask::send(std::uint32_t index, bool again) {
  if (stopped_ || index >= end_) {
    parts_.slots.release();
    --outstanding_;
    // Later: this may run inside ask_more().
    parts_.loop.post([self = shared_from_this()] { self->maybe_end(); });
    return;
  }
  const std::uint64_t size = question_.space->layout.header_bytes();
  Read& read = running_[index];
  read.header = std::make_unique_for_overwrite<std::byte[]>(size);
  read.operation =
      parts_.store.get(parts_.loop,
                       {.key = question_.space->object(question_.chunks[index]),
                        .offset = 0,
                        .length = size,
                        .destination = {Segment(read.header.get(), size)},
                        .version = std::nullopt,
                        .deadline = question_.deadline,
                        .on_bytes = {}},
                       [self = shared_from_this(), index, again](Result<store::GetAnswer> answer) {
                         self->parts_.slots.release();
                         self->on_read(index, again, std::move(answer));
                       });
}

void ProveTask::on_read(std::uint32_t index, bool again, Result<store::GetAnswer> answer) {
  const Read read = std::move(running_.extract(index).mapped());
  --outstanding_;
  if (stopped_ || index >= end_) return maybe_end();
  if (!answer) {
    cut_off(index);
    answer_.error = std::move(answer.error());
  } else if (answer->outcome == store::GetOutcome::kMissing) {
    cut_off(index);
    answer_.missing = index;
  } else {
    const std::uint64_t size = question_.space->layout.header_bytes();
    if (answer->outcome == store::GetOutcome::kOk) answer_.bytes_read += size;
    auto ok = check(index, *answer, {read.header.get(), size});
    if (ok) {
      good_[index] = true;
    } else if (!again) {
      // The fault may have been on the way.
      ++outstanding_;
      parts_.slots.acquire([self = shared_from_this(), index] { self->send(index, true); });
      return;
    } else {
      cut_off(index);
      answer_.error = std::move(ok.error());
      answer_.bad = index;
    }
  }
  ask_more();
  maybe_end();
}

Result<void> ProveTask::check(std::uint32_t index, const store::GetAnswer& answer,
                              ConstSegment header) const {
  const NamespaceState& space = *question_.space;
  const std::string key = space.object(question_.chunks[index]).text;
  const std::uint64_t wanted = space.layout.object_bytes(0);
  if (answer.outcome != store::GetOutcome::kOk) {
    return fail(ErrorCode::kCorrupt, "the object is shorter than its header", "prove", key);
  }
  if (answer.object_bytes != wanted) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("the object has {} bytes, {} wanted", answer.object_bytes, wanted),
                "prove", key);
  }
  format::ExpectedChunk expected{.name = space.digest,
                                 .shard = space.shard,
                                 .key = question_.chunks[index],
                                 .parent = std::nullopt};
  // The first chunk of the list may be any chunk of its prompt.
  if (index > 0) expected.parent = question_.chunks[index - 1];
  auto decoded = format::decode_header(space.layout, header, expected);
  if (decoded) return {};
  Error error = std::move(decoded.error());
  if (error.action.empty()) error.action = "prove";
  if (error.key.empty()) error.key = key;
  return std::unexpected(std::move(error));
}

// Chunks from `index` on do not count any more: what is being read of them is given up, and what
// was the matter with them is of no interest.
void ProveTask::cut_off(std::uint32_t index) {
  end_ = std::min(end_, index);
  answer_.error.reset();
  answer_.missing.reset();
  answer_.bad.reset();
  for (auto& [at, read] : running_) {
    if (at >= end_) read.operation->cancel();
  }
}

void ProveTask::cancel() {
  if (stopped_) return;
  stopped_ = true;
  cut_off(0);
  parts_.loop.post([self = shared_from_this()] { self->maybe_end(); });
}

void ProveTask::maybe_end() {
  // Who was stopped waits for no slot: others may hold them for long.
  if (!done_ || !running_.empty()) return;
  if (!stopped_ && (outstanding_ > 0 || next_ < end_)) return;
  if (timer_ != TimerId::kNone) parts_.loop.cancel_timer(timer_);
  const auto first_bad = std::find(good_.begin(), good_.end(), false);
  answer_.proof.chunks = static_cast<std::uint32_t>(first_bad - good_.begin());
  auto done = std::move(done_);
  done_ = nullptr;
  done(std::move(answer_));
}

}  // namespace objectcache::cache
