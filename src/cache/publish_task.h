#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "cache/chunk_buffer_pool.h"
#include "cache/namespace_state.h"
#include "format/chunk_header.h"
#include "store/object_store.h"

namespace objectcache::cache {

/// Publishes one complete chunk: checks the collected bytes once more, writes the header in front
/// of them and sends the objects, the one with the header last.
///
/// Until the header's object is there the chunk does not exist: a crash leaves the whole chunk or
/// nothing that a reader would look at.
///
/// Threads: owner thread of the loop.   Limits: one PUT at a time; checks at most
/// kVerifyBytesPerTurn before it lets the loop do something else.
class PublishTask final : public store::Operation,
                          public std::enable_shared_from_this<PublishTask> {
 public:
  static constexpr std::uint64_t kVerifyBytesPerTurn = 1ULL << 20;

  struct Job {
    std::shared_ptr<const NamespaceState> space;
    ChunkKey key;
    ChunkKey parent;  ///< All zero for the first chunk of a prompt.
    std::vector<UnitKey> unit_keys;
    std::vector<format::UnitRecord> records;  ///< Layer by layer.
    /// Room for the header, then the slices in layer order.
    std::shared_ptr<ChunkBufferPool::Buffer> buffer;
    /// kReplace: the stored object is known to be bad.
    store::PutMode mode = store::PutMode::kIfAbsent;
  };
  struct Outcome {
    bool already_present = false;
    std::uint64_t bytes_sent = 0;  ///< Of this chunk's objects.
  };
  using Done = std::move_only_function<void(Result<Outcome>)>;

  /// `done` comes on `loop` exactly once, never from inside this call.
  static std::shared_ptr<PublishTask> start(EventLoop& loop, store::ObjectStore& store,
                                            const WallClock& wall_clock, Job job,
                                            TimePoint deadline, Done done);
  void cancel() override;

 private:
  PublishTask(EventLoop& loop, store::ObjectStore& store, const WallClock& wall_clock, Job job,
              TimePoint deadline, Done done);
  void verify_some();
  [[nodiscard]] Result<void> verify_next();
  [[nodiscard]] Result<void> write_header();
  void describe_namespace();
  void look_for_header();
  void put_next();
  void on_put(Result<store::PutAnswer> answer);
  [[nodiscard]] ConstSegment object_body(std::uint32_t object_layer) const;
  void end(Result<Outcome> result);
  void end_with(Error error);

  EventLoop& loop_;
  store::ObjectStore& store_;
  const WallClock& wall_clock_;
  Job job_;
  const TimePoint deadline_;
  Done done_;
  store::OperationHandle running_;
  std::size_t verified_ = 0;       ///< Records checked so far.
  std::uint32_t object_left_ = 0;  ///< Objects still to be sent; they go from the last layer to 0.
  bool replacing_ = false;
  bool cancelled_ = false;
  Outcome outcome_;
};

}  // namespace objectcache::cache
