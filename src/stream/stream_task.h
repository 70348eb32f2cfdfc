#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/memory_budget.h"
#include "format/chunk_header.h"
#include "store/object_store.h"
#include "stream/admission_point.h"
#include "stream/open_stream.h"
#include "stream/progress_meter.h"
#include "stream/read_queue.h"
#include "stream/slice_ledger.h"
#include "stream/stream_state.h"
#include "stream/transfer.h"

namespace objectcache::stream {

/// One running layer stream: starts range reads as the admission point grants them, verifies their
/// bytes as they arrive, announces layers, mends what can be mended, and ends cleanly. The state
/// machine and why no announced byte is ever touched again: docs/internals/stream.md.
///
/// Threads: the stream's loop, but for state(), request_cancel() and what create() does.
/// Limits: connections transfers at once; scratch of each of them from the memory budget; tables of
/// 5 bytes a unit slice. An event costs O(1), but O(connections) where a read starts, ends, or a
/// layer becomes complete.
/// Lifetimes: keeps itself alive until it has ended; the ports must live as long.
class StreamTask final : public AdmissionPoint::Listener,
                         public Transfer::Sink,
                         public std::enable_shared_from_this<StreamTask> {
 public:
  [[nodiscard]] static Result<std::shared_ptr<StreamTask>> create(
      const StreamPorts& ports, const StreamOptions& options,
      std::shared_ptr<const ChunkSource> source, ReadRequest request, const plan::ReadPlan& plan,
      StreamEvents events);
  StreamTask(const StreamTask&) = delete;
  StreamTask& operator=(const StreamTask&) = delete;
  ~StreamTask() override;

  // Any thread.
  [[nodiscard]] const std::shared_ptr<StreamState>& state() const { return state_; }
  [[nodiscard]] EventLoop& loop() const { return loop_; }
  void request_cancel() noexcept;

  void on_admission() override;
  void on_header(Transfer& transfer, ConstSegment header) override;
  void on_slice(Transfer& transfer, std::uint32_t slice, std::uint32_t crc32c) override;

 private:
  struct Chunk {
    std::optional<store::ObjectVersion> version;  // Of the object with the header.
    std::uint16_t transfers = 0;                  // In flight.
    std::uint8_t bad_headers = 0;
    std::uint8_t short_answers = 0;
    std::uint8_t restarts = 0;
    bool restarting = false;  // Waits for its transfers to end, then starts again.
  };

  StreamTask(const StreamPorts& ports, const StreamOptions& options,
             std::shared_ptr<const ChunkSource> source, ReadRequest request,
             DestinationMap destination, std::vector<Piece> pieces, bool announce_at_end,
             StreamEvents events);
  [[nodiscard]] Result<void> join_admission();
  void start();

  // Starting and feeding reads (stream_task.cc).
  void pump();
  bool pump_once();
  [[nodiscard]] std::optional<ReadQueue::Next> next_start();
  [[nodiscard]] bool has_memory_for(const Piece& piece);
  [[nodiscard]] bool may_run_ahead() const;
  void want_more(Transfer& transfer, bool to_the_end);
  [[nodiscard]] std::uint64_t first_want(const Piece& piece) const;
  /// The running read whose next bytes are the most urgent that are wanted now. `drain`: wanted or
  /// not, it may go on to its end.
  [[nodiscard]] Transfer* next_continue(bool drain);
  void start_transfer(const ReadQueue::Next& next, std::uint64_t granted);
  void spread(std::uint64_t bytes);
  [[nodiscard]] std::uint32_t object_layer_of(const Piece& piece) const;
  [[nodiscard]] std::string object_key(const Piece& piece) const;

  // What arrives (stream_answers.cc).
  void on_bytes(Transfer& transfer, std::uint64_t bytes, const store::ObjectVersion& version);
  void on_answer(Transfer& transfer, Result<store::GetAnswer> answer);
  void take_bytes(Transfer& transfer, std::uint64_t bytes, const store::ObjectVersion& version);
  void judge_answer(Transfer& transfer, const Result<store::GetAnswer>& answer);
  void check_version(Transfer& transfer, const store::ObjectVersion& version);
  void announce();
  void after_event();
  void header_is_bad(const Piece& piece, Error error);
  void slice_is_bad(const Piece& piece, std::uint32_t slice);
  void object_is_short(const Transfer& transfer);
  void version_changed(Transfer& transfer);
  void restart_if_idle(std::uint32_t index);
  /// Waits a little for the answers of chunks before a missing one, then fails.
  void settle_missing();
  void chunk_is_missing();
  void bad_object(const Piece& piece, ErrorCode code, std::string message);

  // Ends.
  void stop(Error error, std::optional<std::uint32_t> chunk);
  void deadline_passed();
  void end_if_idle();
  void cancel_transfer(Transfer& transfer);
  [[nodiscard]] bool is_over() const { return failed_ || ready_ == shape_.layers(); }
  [[nodiscard]] std::string what_is_missing() const;

  // Set once.
  EventLoop& loop_;
  store::ObjectStore& store_;
  AdmissionPoint& admission_;
  MemoryBudget& memory_;
  const StreamOptions options_;
  const std::shared_ptr<const ChunkSource> source_;
  const std::vector<ChunkKey> keys_;
  const TimePoint deadline_;
  const std::uint32_t connections_;
  const std::uint64_t lookahead_bytes_;  // 0: derived.
  const bool announce_at_end_;
  const ReadShape shape_;
  const DestinationMap destination_;
  const std::shared_ptr<StreamState> state_;
  const Priority priority_;
  const std::vector<Duration> windows_;
  const std::vector<TimePoint> dues_;  // By layer.
  StreamEvents events_;
  std::atomic<bool> cancel_requested_{false};

  // What has arrived, what is to be done.
  SliceLedger ledger_;
  ReadQueue queue_;
  std::vector<Chunk> chunks_;
  std::uint32_t ready_ = 0;  // As announced.
  ProgressMeter meter_;
  bool first_byte_seen_ = false;

  // Transfers.
  std::vector<std::unique_ptr<Transfer>> idle_;
  std::vector<std::unique_ptr<Transfer>> running_;
  std::vector<std::uint64_t> wanted_in_layer_;  // Bytes wanted so far, by layer.
  std::uint64_t ahead_ = 0;                     // The sum over layers > ready_.
  MemoryBudget::Ticket ticket_;                 // For the scratch of the next read.
  std::shared_ptr<MemoryBudget::Reservation> reservation_;

  // Admission.
  std::optional<sched::StreamId> id_;
  sched::Account account_;      // Not yet told.
  sched::Demand stated_start_;  // What the admission point knows.
  sched::Demand stated_go_on_;
  bool pumping_ = false;
  bool pump_again_ = false;

  // Ends.
  TimerId deadline_timer_ = TimerId::kNone;
  TimerId settle_timer_ = TimerId::kNone;
  std::optional<std::uint32_t> missing_chunk_;
  bool failed_ = false;
  bool ended_ = false;
};

}  // namespace objectcache::stream
