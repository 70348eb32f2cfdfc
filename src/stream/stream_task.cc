#include "stream/stream_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "stream/pieces.h"

namespace objectcache::stream {
namespace {

Result<void> check_request(const ReadRequest& request, const format::ChunkLayout& layout,
                           const StreamOptions& options) {
  const auto invalid = [](std::string message, const char* key) {
    return fail(ErrorCode::kInvalidArgument, std::move(message), "open stream", key);
  };
  if (request.chunks.empty()) return invalid("at least one chunk is needed", "chunks");
  const std::uint64_t slices =
      std::uint64_t{layout.layers()} * layout.units() * request.chunks.size();
  if (request.chunks.size() > UINT32_MAX || slices > options.slices_max) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{} unit slices are more than {}: read the prefix in parts", slices,
                            options.slices_max),
                "open stream", "chunks");
  }
  if (request.last_chunk_tokens > layout.chunk_tokens()) {
    return invalid(fmt::format("a chunk has {} tokens, not {}", layout.chunk_tokens(),
                               request.last_chunk_tokens),
                   "last_chunk_tokens");
  }
  if (!request.windows.empty() && request.windows.size() != layout.layers()) {
    return invalid(fmt::format("{} windows for {} layers: give one a layer, or none",
                               request.windows.size(), layout.layers()),
                   "windows");
  }
  if (request.connections_max > options.connections_max) {
    return invalid(fmt::format("{} connections are more than {}", request.connections_max,
                               options.connections_max),
                   "connections_max");
  }
  return {};
}

std::vector<TimePoint> dues_of(const std::vector<Duration>& windows, std::uint32_t layers,
                               TimePoint start, Duration unknown_window) {
  std::vector<TimePoint> dues(layers, start);
  for (std::uint32_t l = 1; l < layers; ++l) {
    const Duration window = windows.empty() ? unknown_window : windows[l - 1];
    // Half a year a layer is beyond any deadline, and keeps sums away from overflow.
    dues[l] = dues[l - 1] +
              std::clamp<Duration>(window, Duration::zero(), std::chrono::hours(24 * 180) / layers);
  }
  return dues;
}

}  // namespace

Result<std::shared_ptr<StreamTask>> StreamTask::create(const StreamPorts& ports,
                                                       const StreamOptions& options,
                                                       std::shared_ptr<const ChunkSource> source,
                                                       ReadRequest request,
                                                       const plan::ReadPlan& plan,
                                                       StreamEvents events) {
  if (auto checked = check_request(request, source->layout, options); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  const ReadShape shape(source->layout, static_cast<std::uint32_t>(request.chunks.size()),
                        request.last_chunk_tokens);
  auto destination = DestinationMap::create(shape, std::move(request.destination));
  if (!destination) return std::unexpected(std::move(destination.error()));
  auto pieces = pieces_of(shape, plan.reads, options.surplus_bytes_max);
  if (!pieces) return std::unexpected(std::move(pieces.error()));
  std::uint64_t scratch_max = 0;
  for (const Piece& piece : *pieces) {
    scratch_max = std::max(scratch_max, Transfer::scratch_bytes(shape, piece));
  }
  if (scratch_max > ports.memory.stats().capacity_bytes) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("one read needs {} bytes of memory, the limit for all is {}: raise "
                            "read_memory_bytes",
                            scratch_max, ports.memory.stats().capacity_bytes),
                "open stream", "read_memory_bytes");
  }
  std::shared_ptr<StreamTask> task(
      new StreamTask(ports, options, std::move(source), std::move(request), std::move(*destination),
                     std::move(*pieces), plan.announce_at_end, std::move(events)));
  if (auto joined = task->join_admission(); !joined) {
    return std::unexpected(std::move(joined.error()));
  }
  ports.loop.post([task] { task->start(); });
  return task;
}

StreamTask::StreamTask(const StreamPorts& ports, const StreamOptions& options,
                       std::shared_ptr<const ChunkSource> source, ReadRequest request,
                       DestinationMap destination, std::vector<Piece> pieces, bool announce_at_end,
                       StreamEvents events)
    : loop_(ports.loop),
      store_(ports.store),
      admission_(ports.admission),
      memory_(ports.memory),
      options_(options),
      source_(std::move(source)),
      keys_(std::move(request.chunks)),
      deadline_(request.deadline),
      connections_(request.connections_max == 0 ? options.connections_default
                                                : request.connections_max),
      lookahead_bytes_(request.lookahead_bytes),
      announce_at_end_(announce_at_end),
      shape_(source_->layout, static_cast<std::uint32_t>(keys_.size()), request.last_chunk_tokens),
      destination_(std::move(destination)),
      state_(std::make_shared<StreamState>(shape_.layers(), loop_.now())),
      priority_(request.priority),
      windows_(std::move(request.windows)),
      dues_(dues_of(windows_, shape_.layers(), loop_.now(), options.unknown_window)),
      events_(std::move(events)),
      ledger_(shape_),
      queue_(shape_, std::move(pieces)),
      chunks_(keys_.size()),
      wanted_in_layer_(shape_.layers()) {}

StreamTask::~StreamTask() = default;

Result<void> StreamTask::join_admission() {
  std::vector<std::uint64_t> layer_bytes(shape_.layers());
  for (std::uint32_t l = 0; l < shape_.layers(); ++l) layer_bytes[l] = shape_.layer_bytes_read(l);
  auto added = admission_.add({.priority = priority_,
                               .group = 0,
                               .start = dues_.front(),
                               .layer_bytes = layer_bytes,
                               .windows = windows_},
                              loop_, weak_from_this());
  if (!added) return std::unexpected(std::move(added.error()));
  id_ = *added;
  return {};
}

void StreamTask::start() {
  if (is_over()) return;
  deadline_timer_ = loop_.run_at(deadline_, [self = shared_from_this()] {
    self->deadline_timer_ = TimerId::kNone;
    self->deadline_passed();
    self->after_event();
  });
  after_event();
}

void StreamTask::on_admission() {
  if (!ended_) after_event();
}

// ---------------------------------------------------------------- what to do next

void StreamTask::pump() {
  // A store may deliver the first bytes while it is being asked for them.
  pump_again_ = true;
  if (pumping_) return;
  pumping_ = true;
  while (pump_again_) {
    pump_again_ = false;
    while (pump_once()) {
    }
  }
  pumping_ = false;
}

bool StreamTask::pump_once() {
  if (!id_) return false;
  sched::Demand start;
  const auto next = next_start();
  if (next && running_.size() < connections_ && has_memory_for(next->piece)) {
    start = {.bytes = first_want(next->piece), .due = dues_[shape_.layer_of(next->piece.begin)]};
  }
  if (!next) ticket_.release();
  AdmissionPoint::Update update{
      .account = std::exchange(account_, {}), .start = std::nullopt, .go_on = std::nullopt};
  if (start != stated_start_) update.start = stated_start_ = start;
  auto grants = admission_.update(*id_, update);
  if (grants.is_empty()) {
    // What must be started and cannot be needs a free connection, request or memory: then those
    // that run may run to their ends, so that nobody waits for each other.
    Transfer* more = next_continue(queue_.needs(ready_));
    sched::Demand go_on;
    if (more != nullptr) {
      go_on = {.bytes = more->wanted - more->granted, .due = dues_[more->next_layer()]};
    }
    if (go_on == stated_go_on_) return false;
    stated_go_on_ = go_on;
    grants = admission_.update(*id_, {.account = {}, .start = std::nullopt, .go_on = go_on});
  }
  if (grants.start_bytes > 0) {
    stated_start_ = {};
    // It may come after the demand was withdrawn.
    if (start.bytes > 0) {
      start_transfer(*next, grants.start_bytes);
    } else {
      account_.released_bytes += grants.start_bytes;
      ++account_.requests_ended;
    }
  }
  if (grants.go_on_bytes > 0) {
    stated_go_on_ = {};
    spread(grants.go_on_bytes);
  }
  return !grants.is_empty();
}

std::optional<ReadQueue::Next> StreamTask::next_start() {
  if (is_over() || missing_chunk_) return std::nullopt;
  const auto may_start = [this](const Piece& piece) {
    if (chunks_[piece.chunk].restarting) return false;
    // Never two transfers into the same memory.
    return std::ranges::none_of(running_, [&](const auto& other) {
      return other->piece().chunk == piece.chunk && piece.begin < other->piece().end &&
             other->piece().begin < piece.end;
    });
  };
  for (;;) {
    const auto next = queue_.peek(may_start);
    if (!next) return next;
    if (chunks_[next->piece.chunk].restarting) {
      queue_.take(*next);  // It comes back when the chunk starts again.
      continue;
    }
    const bool in_time = shape_.layer_of(next->piece.begin) <= ready_;
    if (in_time || queue_.needs(ready_) || may_run_ahead()) return next;
    return std::nullopt;
  }
}

bool StreamTask::may_run_ahead() const {
  if (announce_at_end_) return true;  // No layer is worth more than another.
  if (lookahead_bytes_ != 0) return ahead_ < lookahead_bytes_;
  const std::uint32_t next_layer = std::min(ready_ + 1, shape_.layers() - 1);
  return ahead_ <
         std::max(shape_.layer_bytes_read(next_layer), 2 * meter_.bytes_per_first_byte_time());
}

bool StreamTask::has_memory_for(const Piece& piece) {
  const std::uint64_t needed = Transfer::scratch_bytes(shape_, piece);
  if (needed == 0) ticket_.release();
  if (ticket_.bytes() >= needed) return true;
  if (reservation_) return false;
  ticket_.release();
  if (auto ticket = memory_.try_reserve(needed)) {
    ticket_ = std::move(*ticket);
    return true;
  }
  reservation_ = memory_.reserve(loop_, needed, deadline_,
                                 [self = shared_from_this()](Result<MemoryBudget::Ticket> ticket) {
                                   self->reservation_.reset();
                                   if (ticket) {
                                     self->ticket_ = std::move(*ticket);
                                   } else if (ticket.error().code == ErrorCode::kDeadlineExceeded) {
                                     self->deadline_passed();
                                   } else {
                                     self->stop(std::move(ticket.error()), std::nullopt);
                                   }
                                   self->after_event();
                                 });
  return false;
}

std::uint64_t StreamTask::first_want(const Piece& piece) const {
  const std::uint32_t layer = shape_.layer_of(piece.begin);
  const Piece first{.chunk = piece.chunk,
                    .begin = piece.begin,
                    .end = std::min(piece.end, shape_.slice_index(layer + 1, 0)),
                    .with_header = piece.with_header};
  return Transfer::range_bytes(shape_, first);
}

void StreamTask::want_more(Transfer& transfer, bool to_the_end) {
  transfer.grant_layer = transfer.want_layer;
  do {
    const std::uint32_t layer = transfer.want_layer;
    const std::uint64_t end = transfer.next_layer_end(transfer.wanted);
    const std::uint64_t bytes = end - transfer.wanted;
    wanted_in_layer_[layer] += bytes;
    if (layer > ready_) ahead_ += bytes;
    transfer.wanted = end;
    if (end < transfer.length()) transfer.want_layer = transfer.layer_at(end);
  } while (to_the_end && transfer.wanted < transfer.length());
}

Transfer* StreamTask::next_continue(bool drain) {
  if (is_over() || missing_chunk_) return nullptr;
  Transfer* best = nullptr;
  const bool ahead_allowed = drain || may_run_ahead();
  for (const auto& transfer : running_) {
    if (transfer->cancelled || transfer->granted == transfer->length()) continue;
    const bool waits = transfer->granted < transfer->wanted;
    if (!waits && transfer->want_layer > ready_ && !ahead_allowed) continue;
    if (best == nullptr || transfer->next_layer() < best->next_layer()) best = transfer.get();
  }
  if (best != nullptr && best->granted == best->wanted) want_more(*best, drain);
  return best;
}

// ---------------------------------------------------------------- transfers

void StreamTask::start_transfer(const ReadQueue::Next& next, std::uint64_t granted) {
  const Piece piece = next.piece;
  queue_.take(next);
  std::unique_ptr<Transfer> owned;
  if (idle_.empty()) {
    owned = std::make_unique<Transfer>();
  } else {
    owned = std::move(idle_.back());
    idle_.pop_back();
  }
  Transfer& transfer = *owned;
  running_.push_back(std::move(owned));
  ticket_.give_back(ticket_.bytes() - Transfer::scratch_bytes(shape_, piece));
  transfer.begin(shape_, destination_, piece, std::exchange(ticket_, {}));
  transfer.started = loop_.now();
  transfer.want_layer = shape_.layer_of(piece.begin);
  want_more(transfer, false);
  transfer.granted = std::min(granted, transfer.wanted);
  account_.released_bytes += granted - transfer.granted;
  Chunk& chunk = chunks_[piece.chunk];
  ++chunk.transfers;
  state_->count_request(next.again != ReadQueue::Next::kFromPlan);
  state_->count_scratch(transfer.scratch_size(), 0);

  const std::uint32_t object_layer = object_layer_of(piece);
  store::GetRequest request;
  request.key = {source_->names.object(keys_[piece.chunk], source_->shard, object_layer)};
  request.offset = Transfer::range_offset(shape_, piece);
  request.length = transfer.length();
  request.destination = transfer.segments();
  if (object_layer == 0) request.version = chunk.version;
  request.deadline = deadline_;
  request.grant_bytes = transfer.granted;
  request.on_bytes = [self = shared_from_this(), &transfer](std::uint64_t bytes,
                                                            const store::ObjectVersion& version) {
    self->on_bytes(transfer, bytes, version);
  };
  transfer.operation =
      store_.get(loop_, std::move(request),
                 [self = shared_from_this(), &transfer](Result<store::GetAnswer> answer) {
                   self->on_answer(transfer, std::move(answer));
                 });
  if (transfer.cancelled) transfer.operation->cancel();
}

void StreamTask::spread(std::uint64_t bytes) {
  while (bytes > 0) {
    Transfer* transfer = next_continue(false);
    if (transfer == nullptr) break;
    const std::uint64_t part = std::min(bytes, transfer->wanted - transfer->granted);
    transfer->granted += part;
    bytes -= part;
    if (transfer->operation) transfer->operation->grant(part);
  }
  account_.released_bytes += bytes;
}

std::uint32_t StreamTask::object_layer_of(const Piece& piece) const {
  return shape_.layout().object_layout() == ObjectLayout::kChunk ? 0 : shape_.layer_of(piece.begin);
}

std::string StreamTask::object_key(const Piece& piece) const {
  return source_->names.object(keys_[piece.chunk], source_->shard, object_layer_of(piece));
}

}  // namespace objectcache::stream
