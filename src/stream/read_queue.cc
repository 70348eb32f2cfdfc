#include "stream/read_queue.h"

#include <algorithm>
#include <utility>

namespace objectcache::stream {

ReadQueue::ReadQueue(const ReadShape& shape, std::vector<Piece> plan)
    : shape_(shape), plan_(std::move(plan)), unstarted_(shape.layers()) {
  for (const Piece& piece : plan_) ++unstarted_[first_layer(piece)];
}

std::optional<ReadQueue::Next> ReadQueue::peek(
    const std::function<bool(const Piece&)>& may_start) const {
  std::optional<Next> best;
  for (std::size_t i = 0; i < again_.size(); ++i) {
    if (best && first_layer(best->piece) <= first_layer(again_[i])) continue;
    if (may_start(again_[i])) best = Next{.piece = again_[i], .again = i};
  }
  // At the same layer, what is read again comes first: it is late already.
  if (next_ < plan_.size() && (!best || first_layer(plan_[next_]) < first_layer(best->piece))) {
    best = Next{.piece = plan_[next_]};
  }
  return best;
}

void ReadQueue::take(const Next& next) {
  if (next.again != Next::kFromPlan) {
    again_.erase(again_.begin() + static_cast<std::ptrdiff_t>(next.again));
    return;
  }
  --unstarted_[first_layer(plan_[next_])];
  ++next_;
  while (lowest_unstarted_ < unstarted_.size() && unstarted_[lowest_unstarted_] == 0) {
    ++lowest_unstarted_;
  }
}

void ReadQueue::read_again(const Piece& piece) { again_.push_back(piece); }

void ReadQueue::read_again(std::uint32_t chunk, std::uint32_t slice) {
  const bool one_object = shape_.layout().object_layout() == ObjectLayout::kChunk;
  if (!again_.empty()) {
    Piece& last = again_.back();
    if (last.chunk == chunk && !last.with_header && last.end == slice && last.begin < last.end &&
        (one_object || shape_.layer_of(last.begin) == shape_.layer_of(slice))) {
      ++last.end;
      return;
    }
  }
  again_.push_back({.chunk = chunk, .begin = slice, .end = slice + 1, .with_header = false});
}

void ReadQueue::restart_chunk(std::uint32_t chunk) {
  std::erase_if(again_, [&](const Piece& piece) { return piece.chunk == chunk; });
  for (std::size_t i = 0; i < next_; ++i) {
    if (plan_[i].chunk == chunk) again_.push_back(plan_[i]);
  }
}

bool ReadQueue::needs(std::uint32_t layer) const {
  if (lowest_unstarted_ <= layer && lowest_unstarted_ < unstarted_.size()) return true;
  return std::ranges::any_of(again_,
                             [&](const Piece& piece) { return first_layer(piece) <= layer; });
}

}  // namespace objectcache::stream
