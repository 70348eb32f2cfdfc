#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "stream/read_shape.h"

namespace objectcache::stream {

/// What one stream has yet to start: the plan's pieces in the plan's order, and pieces to be read
/// again. Also knows whether anything that the oldest incomplete layer needs is among them.
///
/// Pure. Threads: one at a time.
class ReadQueue {
 public:
  /// Requires: every piece has at least one slice, and each wanted slice is in exactly one piece.
  ReadQueue(const ReadShape& shape, std::vector<Piece> plan);

  /// The piece to start next. `may_start` says which of those to be read again are free to go now.
  struct Next {
    Piece piece;
    std::size_t again = kFromPlan;  ///< Which of those to be read again, or:
    static constexpr std::size_t kFromPlan = static_cast<std::size_t>(-1);
  };
  [[nodiscard]] std::optional<Next> peek(const std::function<bool(const Piece&)>& may_start) const;
  /// Takes what peek() gave.
  void take(const Next& next);

  void read_again(const Piece& piece);
  /// Slice `slice` alone; joins the piece before where the two are neighbours.
  void read_again(std::uint32_t chunk, std::uint32_t slice);
  /// Everything of this chunk that was started is to be read again, in place of what was waiting
  /// to be.
  void restart_chunk(std::uint32_t chunk);

  /// True while something that layers 0 to `layer` need is waiting to be started.
  [[nodiscard]] bool needs(std::uint32_t layer) const;
  [[nodiscard]] bool empty() const { return again_.empty() && next_ == plan_.size(); }

 private:
  [[nodiscard]] std::uint32_t first_layer(const Piece& piece) const {
    return shape_.layer_of(piece.begin);
  }

  ReadShape shape_;
  std::vector<Piece> plan_;
  std::size_t next_ = 0;                  // plan_[next_] is the next to start.
  std::vector<std::uint32_t> unstarted_;  // Pieces of the plan not yet started, by first layer.
  std::uint32_t lowest_unstarted_ = 0;    // No such piece has a lower first layer.
  std::deque<Piece> again_;
};

}  // namespace objectcache::stream
