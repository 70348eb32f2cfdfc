#include "cache/publish_task.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "digest/crc32c.h"

namespace objectcache::cache {
namespace {

/// The description is for people: a slow store must not hold up the chunk for it.
constexpr Duration kDescribeTimeout = std::chrono::seconds(10);

}  // namespace

PublishTask::PublishTask(EventLoop& loop, store::ObjectStore& store, const WallClock& wall_clock,
                         Job job, TimePoint deadline, Done done)
    : loop_(loop),
      store_(store),
      wall_clock_(wall_clock),
      job_(std::move(job)),
      deadline_(deadline),
      done_(std::move(done)),
      object_left_(job_.space->layout.object_count()),
      replacing_(job_.mode == store::PutMode::kReplace) {}

std::shared_ptr<PublishTask> PublishTask::start(EventLoop& loop, store::ObjectStore& store,
                                                const WallClock& wall_clock, Job job,
                                                TimePoint deadline, Done done) {
  std::shared_ptr<PublishTask> task(
      new PublishTask(loop, store, wall_clock, std::move(job), deadline, std::move(done)));
  loop.post([task] { task->verify_some(); });
  return task;
}

void PublishTask::cancel() {
  cancelled_ = true;
  if (running_) running_->cancel();
}

void PublishTask::verify_some() {
  std::uint64_t checked = 0;
  while (!cancelled_ && verified_ < job_.records.size() && checked < kVerifyBytesPerTurn) {
    checked += job_.records[verified_].stored_bytes;
    if (auto ok = verify_next(); !ok) return end_with(std::move(ok.error()));
  }
  if (cancelled_) {
    return end(fail(ErrorCode::kCancelled, "the writer was told to stop", "publish",
                    job_.space->object(job_.key).text));
  }
  if (verified_ < job_.records.size()) {
    loop_.post([self = shared_from_this()] { self->verify_some(); });
    return;
  }
  if (auto ok = write_header(); !ok) return end_with(std::move(ok.error()));
  describe_namespace();
}

Result<void> PublishTask::verify_next() {
  const format::ChunkLayout& layout = job_.space->layout;
  const auto layer = static_cast<std::uint32_t>(verified_ / layout.units());
  const auto unit = static_cast<std::uint32_t>(verified_ % layout.units());
  const format::UnitRecord& record = job_.records[verified_++];
  const std::uint64_t size = layout.unit_bytes(layer);
  std::uint64_t offset = layout.header_bytes() + unit * size;
  for (std::uint32_t l = 0; l < layer; ++l) offset += layout.slice_bytes(l);
  const ConstSegment bytes(job_.buffer->data() + offset, size);
  if (record.stored_bytes != size || digest::crc32c(bytes) != record.crc32c) {
    return fail(ErrorCode::kInternal, "the collected bytes changed before they were sent",
                "publish", job_.space->object(job_.key).text);
  }
  return {};
}

Result<void> PublishTask::write_header() {
  const NamespaceState& space = *job_.space;
  const auto created =
      std::chrono::duration_cast<std::chrono::milliseconds>(wall_clock_.now().time_since_epoch());
  const format::ChunkHeader header{
      .name = space.digest,
      .shard = space.shard,
      .key = job_.key,
      .parent = job_.parent,
      .created_unix_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, created.count())),
      .unit_keys = std::move(job_.unit_keys),
      .records = std::move(job_.records)};
  const Segment out(job_.buffer->data(), space.layout.header_bytes());
  if (auto ok = format::encode_header(space.layout, header, out); !ok) return ok;
  // What is sent must be what a reader accepts; found here it costs one chunk, found later a read.
  auto read_back = format::decode_header(
      space.layout, out,
      {.name = space.digest, .shard = space.shard, .key = job_.key, .parent = job_.parent});
  if (!read_back) return std::unexpected(std::move(read_back.error()));
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < space.layout.object_count(); ++i) {
    total += space.layout.object_bytes(i);
  }
  if (total != job_.buffer->size()) {
    return fail(ErrorCode::kInternal, "the chunk's objects do not add up to its buffer", "publish",
                space.object(job_.key).text);
  }
  return {};
}

void PublishTask::describe_namespace() {
  using Description = NamespaceState::Description;
  auto expected = Description::kUnknown;
  if (!job_.space->description.compare_exchange_strong(expected, Description::kBeingWritten)) {
    return look_for_header();
  }
  const std::string& json = job_.space->canonical_json;
  running_ = store_.put(
      loop_,
      {.key = {job_.space->names.namespace_json()},
       .body = {ConstSegment(reinterpret_cast<const std::byte*>(json.data()), json.size())},
       .mode = store::PutMode::kIfAbsent,
       .deadline = std::min(deadline_, loop_.now() + kDescribeTimeout)},
      [self = shared_from_this()](Result<store::PutAnswer> answer) {
        self->running_.reset();
        // Not essential: the next chunk tries again.
        self->job_.space->description.store(answer ? Description::kStored : Description::kUnknown);
        self->look_for_header();
      });
}

void PublishTask::look_for_header() {
  if (job_.space->layout.object_count() == 1 || replacing_ || cancelled_) return put_next();
  // One small request saves a request a layer when the chunk is already there.
  running_ =
      store_.head(loop_, job_.space->object(job_.key), deadline_,
                  [self = shared_from_this()](Result<std::optional<store::ObjectInfo>> found) {
                    self->running_.reset();
                    if (found && found->has_value()) {
                      self->outcome_.already_present = true;
                      return self->end(self->outcome_);
                    }
                    self->put_next();  // On an error, too: the PUT finds out what is the matter.
                  });
}

ConstSegment PublishTask::object_body(std::uint32_t object_layer) const {
  const format::ChunkLayout& layout = job_.space->layout;
  if (object_layer == 0) return {job_.buffer->data(), layout.object_bytes(0)};
  std::uint64_t offset = layout.header_bytes();
  for (std::uint32_t l = 0; l < object_layer; ++l) offset += layout.slice_bytes(l);
  return {job_.buffer->data() + offset, layout.object_bytes(object_layer)};
}

void PublishTask::put_next() {
  const std::uint32_t object_layer = object_left_ - 1;
  store::ObjectKey key = job_.space->object(job_.key, object_layer);
  if (cancelled_) {
    return end(fail(ErrorCode::kCancelled, "the writer was told to stop", "publish", key.text));
  }
  // A layer object without a header may be anybody's rest, even a bad one: only the header decides
  // that the chunk exists, and nobody has published it yet.
  const bool replace = replacing_ || object_layer > 0;
  const auto mode = replace ? store::PutMode::kReplace : store::PutMode::kIfAbsent;
  running_ = store_.put(loop_,
                        {.key = std::move(key),
                         .body = {object_body(object_layer)},
                         .mode = mode,
                         .deadline = deadline_},
                        [self = shared_from_this()](Result<store::PutAnswer> answer) {
                          self->running_.reset();
                          self->on_put(std::move(answer));
                        });
}

void PublishTask::on_put(Result<store::PutAnswer> answer) {
  if (!answer) return end_with(std::move(answer.error()));
  const std::uint32_t object_layer = object_left_ - 1;
  if (answer->outcome == store::PutOutcome::kAlreadyExists) {
    if (object_layer == 0) {
      outcome_.already_present = true;
      return end(outcome_);
    }
    // A layer without a header is what a writer that died left behind, or a rival's who is writing
    // now. Its bytes may be rounded differently, so ours must replace all of them, header included:
    // checksums then fit. Two rivals that interleave are found out by the reader's check.
    replacing_ = true;
    return put_next();
  }
  outcome_.bytes_sent += job_.space->layout.object_bytes(object_layer);
  if (--object_left_ == 0) return end(outcome_);
  put_next();
}

void PublishTask::end_with(Error error) { end(std::unexpected(std::move(error))); }

void PublishTask::end(Result<Outcome> result) {
  job_.buffer.reset();
  auto done = std::move(done_);
  done(std::move(result));
}

}  // namespace objectcache::cache
