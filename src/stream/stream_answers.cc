// What a stream makes of the bytes and answers that arrive, and how it ends.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "stream/stream_task.h"

namespace objectcache::stream {

using store::GetOutcome;

// ---------------------------------------------------------------- bytes

void StreamTask::on_bytes(Transfer& transfer, std::uint64_t bytes,
                          const store::ObjectVersion& version) {
  take_bytes(transfer, bytes, version);
  after_event();
}

void StreamTask::take_bytes(Transfer& transfer, std::uint64_t bytes,
                            const store::ObjectVersion& version) {
  bytes = std::min(bytes, transfer.length());
  if (bytes <= transfer.seen()) return;
  const TimePoint now = loop_.now();
  const std::uint64_t fresh = bytes - transfer.seen();
  account_.received_bytes +=
      std::min(bytes, transfer.granted) - std::min(transfer.seen(), transfer.granted);
  state_->count_bytes(fresh);
  if (!first_byte_seen_) state_->first_byte_at(now);
  first_byte_seen_ = true;
  meter_.on_bytes(fresh, now);
  if (!transfer.contacted) {
    transfer.contacted = true;
    meter_.on_first_byte(now - transfer.started);
    if (!transfer.halted) check_version(transfer, version);
  }
  transfer.advance(bytes, *this);
}

void StreamTask::check_version(Transfer& transfer, const store::ObjectVersion& version) {
  if (object_layer_of(transfer.piece()) != 0) return;  // Its header's checksums speak for it.
  auto& known = chunks_[transfer.piece().chunk].version;
  if (!known) {
    known = version;
  } else if (*known != version) {
    version_changed(transfer);
  }
}

void StreamTask::on_header(Transfer& transfer, ConstSegment header) {
  const std::uint32_t chunk = transfer.piece().chunk;
  if (ledger_.has_header(chunk)) return;
  auto decoded = format::decode_header(source_->layout, header,
                                       {.name = source_->name,
                                        .shard = source_->shard,
                                        .key = keys_[chunk],
                                        .parent = std::nullopt});
  if (!decoded) {
    header_is_bad(transfer.piece(), std::move(decoded.error()));
    return;
  }
  std::vector<std::uint32_t> bad;
  std::vector<std::uint32_t> bad_again;
  ledger_.set_header(chunk, *decoded, bad, bad_again);
  for (const std::uint32_t slice : bad) queue_.read_again(chunk, slice);
  if (!bad_again.empty()) slice_is_bad(transfer.piece(), bad_again.front());
  announce();
}

void StreamTask::on_slice(Transfer& transfer, std::uint32_t slice, std::uint32_t crc32c) {
  const std::uint32_t chunk = transfer.piece().chunk;
  switch (ledger_.arrived(chunk, slice, crc32c)) {
    case SliceLedger::Verdict::kWaits:
      return;
    case SliceLedger::Verdict::kGood:
      announce();
      return;
    case SliceLedger::Verdict::kBad:
      queue_.read_again(chunk, slice);
      return;
    case SliceLedger::Verdict::kBadAgain:
      slice_is_bad(transfer.piece(), slice);
      return;
  }
}

void StreamTask::announce() {
  const std::uint32_t ready = ledger_.complete_layers();
  if (failed_ || ready == ready_) return;
  for (std::uint32_t l = ready_ + 1; l <= std::min(ready, shape_.layers() - 1); ++l) {
    ahead_ -= wanted_in_layer_[l];
  }
  ready_ = ready;
  if (!announce_at_end_ || ready == shape_.layers()) state_->publish_ready(ready, loop_.now());
}

void StreamTask::after_event() {
  settle_missing();
  pump();
  end_if_idle();
}

// ---------------------------------------------------------------- answers

void StreamTask::on_answer(Transfer& transfer, Result<store::GetAnswer> answer) {
  const auto at = std::ranges::find_if(
      running_, [&](const auto& running) { return running.get() == &transfer; });
  std::unique_ptr<Transfer> owned = std::move(*at);
  running_.erase(at);
  const std::uint32_t chunk = transfer.piece().chunk;
  --chunks_[chunk].transfers;
  if (answer && answer->outcome == GetOutcome::kOk) {
    take_bytes(transfer, transfer.length(), answer->version);
  }
  account_.released_bytes += transfer.granted - std::min(transfer.seen(), transfer.granted);
  ++account_.requests_ended;
  if (!transfer.cancelled && !is_over()) judge_answer(transfer, answer);
  state_->count_scratch(0, transfer.scratch_size());
  transfer.end();
  idle_.push_back(std::move(owned));
  restart_if_idle(chunk);
  after_event();
}

void StreamTask::judge_answer(Transfer& transfer, const Result<store::GetAnswer>& answer) {
  const Piece& piece = transfer.piece();
  if (!answer) {
    const Error& error = answer.error();
    switch (error.code) {
      case ErrorCode::kDeadlineExceeded:
        deadline_passed();
        return;
      case ErrorCode::kCorrupt:
      case ErrorCode::kIncompatible:
        bad_object(piece, error.code, error.message);
        return;
      default:
        stop(error, std::nullopt);
        return;
    }
  }
  switch (answer->outcome) {
    case GetOutcome::kOk:
      return;
    case GetOutcome::kMissing:
      missing_chunk_ = std::min(missing_chunk_.value_or(piece.chunk), piece.chunk);
      return;
    case GetOutcome::kVersionChanged:
      version_changed(transfer);
      return;
    case GetOutcome::kOutOfRange:
      object_is_short(transfer);
      return;
  }
}

void StreamTask::header_is_bad(const Piece& piece, Error error) {
  if (++chunks_[piece.chunk].bad_headers > 1) {
    bad_object(piece, error.code, std::move(error.message));
    return;
  }
  queue_.read_again({.chunk = piece.chunk, .begin = 0, .end = 0, .with_header = true});
}

void StreamTask::slice_is_bad(const Piece& piece, std::uint32_t slice) {
  bad_object(piece, ErrorCode::kCorrupt,
             fmt::format("layer {}, unit {}: the checksum is wrong, twice; recompute it, and mend "
                         "the store with `objectcache verify --repair`",
                         shape_.layer_of(slice), shape_.unit_of(slice)));
}

void StreamTask::object_is_short(const Transfer& transfer) {
  // Nothing of the range was delivered, so that all of it can be asked for once more.
  if (++chunks_[transfer.piece().chunk].short_answers == 1 && transfer.seen() == 0) {
    queue_.read_again(transfer.piece());
    return;
  }
  bad_object(transfer.piece(), ErrorCode::kCorrupt,
             fmt::format("the object ends before byte {}",
                         Transfer::range_offset(shape_, transfer.piece()) + transfer.length()));
}

void StreamTask::bad_object(const Piece& piece, ErrorCode code, std::string message) {
  if (is_over()) return;
  Error error{.code = code,
              .message = fmt::format("chunk {} of {}: {}", piece.chunk, shape_.chunks(), message),
              .action = "read chunk",
              .key = object_key(piece),
              .s3_code = {},
              .request_id = {},
              .http_status = 0};
  if (events_.on_bad_object) events_.on_bad_object(piece.chunk, error);
  stop(std::move(error), piece.chunk);
}

void StreamTask::version_changed(Transfer& transfer) {
  const std::uint32_t index = transfer.piece().chunk;
  Chunk& chunk = chunks_[index];
  if (is_over() || chunk.restarting) return;
  if (ledger_.complete_layers() > 0 || chunk.restarts > 0) {
    stop({.code = ErrorCode::kConflict,
          .message =
              fmt::format("chunk {} of {} was replaced while it was read{}; read again", index,
                          shape_.chunks(), chunk.restarts > 0 ? ", for the second time" : ""),
          .action = "read chunk",
          .key = object_key(transfer.piece()),
          .s3_code = {},
          .request_id = {},
          .http_status = 0},
         std::nullopt);
    return;
  }
  ++chunk.restarts;
  chunk.restarting = true;
  cancel_transfer(transfer);  // It may have left running_ already.
  for (const auto& running : running_) {
    if (running->piece().chunk == index) cancel_transfer(*running);
  }
  // At once, although its reads still end: no layer may become complete with bytes that will be
  // overwritten.
  ledger_.restart(index);
}

void StreamTask::restart_if_idle(std::uint32_t index) {
  Chunk& chunk = chunks_[index];
  if (!chunk.restarting || chunk.transfers > 0) return;
  chunk = {.version = std::nullopt,
           .transfers = 0,
           .bad_headers = 0,
           .short_answers = 0,
           .restarts = chunk.restarts,
           .restarting = false};
  queue_.restart_chunk(index);
}

void StreamTask::settle_missing() {
  if (!missing_chunk_ || is_over()) return;
  bool waits = false;
  for (const auto& transfer : running_) {
    if (transfer->cancelled) continue;
    if (transfer->piece().chunk >= *missing_chunk_ || transfer->contacted) {
      cancel_transfer(*transfer);
    } else {
      waits = true;
    }
  }
  if (!waits) {
    chunk_is_missing();
  } else if (settle_timer_ == TimerId::kNone) {
    settle_timer_ = loop_.run_at(loop_.now() + options_.settle, [self = shared_from_this()] {
      self->settle_timer_ = TimerId::kNone;
      self->chunk_is_missing();
      self->after_event();
    });
  }
}

void StreamTask::chunk_is_missing() {
  const Piece piece{.chunk = *missing_chunk_, .begin = 0, .end = 0, .with_header = true};
  stop({.code = ErrorCode::kNotFound,
        .message = fmt::format("chunk {} of {} is gone: it was deleted between match and read",
                               piece.chunk, shape_.chunks()),
        .action = "read chunk",
        .key = object_key(piece),
        .s3_code = {},
        .request_id = {},
        .http_status = 0},
       piece.chunk);
}

// ---------------------------------------------------------------- ends

void StreamTask::request_cancel() noexcept {
  if (cancel_requested_.exchange(true)) return;
  loop_.post([self = shared_from_this()] {
    self->stop({.code = ErrorCode::kCancelled,
                .message = "cancelled by the caller",
                .action = "read",
                .key = {},
                .s3_code = {},
                .request_id = {},
                .http_status = 0},
               std::nullopt);
    self->after_event();
  });
}

void StreamTask::deadline_passed() {
  if (missing_chunk_ && !is_over()) {
    chunk_is_missing();
    return;
  }
  stop({.code = ErrorCode::kDeadlineExceeded,
        .message = what_is_missing(),
        .action = "read",
        .key = {},
        .s3_code = {},
        .request_id = {},
        .http_status = 0},
       std::nullopt);
}

std::string StreamTask::what_is_missing() const {
  if (is_over()) return {};
  const char* waits_for = "their bytes";
  if (reservation_) {
    waits_for = "memory (read_memory_bytes)";
  } else if (running_.empty()) {
    waits_for = "a turn among the process's reads (requests_in_flight_max)";
  }
  return fmt::format(
      "layer {} of {} is not complete: {} of its {} unit slices are missing; {} reads run; waits "
      "for {}",
      ready_, shape_.layers(), ledger_.missing_slices(ready_), ledger_.layer_slices(),
      running_.size(), waits_for);
}

void StreamTask::cancel_transfer(Transfer& transfer) {
  if (transfer.cancelled) return;
  transfer.halt();
  transfer.cancelled = true;
  if (transfer.operation) transfer.operation->cancel();
}

void StreamTask::stop(Error error, std::optional<std::uint32_t> chunk) {
  if (is_over()) return;
  failed_ = true;
  StreamFailure failure{.error = std::move(error), .chunk = chunk};
  if (events_.on_failure) events_.on_failure(failure);
  state_->publish_failure(std::move(failure));
  for (const auto& transfer : running_) cancel_transfer(*transfer);
  if (reservation_) reservation_->cancel();
  ticket_.release();
}

void StreamTask::end_if_idle() {
  if (ended_ || !is_over() || !running_.empty() || reservation_ || pumping_) return;
  ended_ = true;
  admission_.remove(*std::exchange(id_, std::nullopt));
  loop_.cancel_timer(std::exchange(deadline_timer_, TimerId::kNone));
  loop_.cancel_timer(std::exchange(settle_timer_, TimerId::kNone));
  idle_.clear();
  StreamEvents events = std::exchange(events_, {});
  state_->publish_ended();
  if (events.on_ended) events.on_ended(state_->stats(), state_->failure());
}

}  // namespace objectcache::stream
