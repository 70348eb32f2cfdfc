#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace objectcache::plan {

/// Finds how many leading chunks of a request are in the store, by probing few of them, many at a
/// time: a k-ary search. 1,024 chunks take two rounds of at most 34 probes; nothing present takes
/// one round, and so does everything present, and so does a hint that is right.
///
/// Presence is only almost monotone (a chunk may have been lost in the middle), so the result is a
/// hint: the first index that was found absent, where all probed below it were present. The search
/// never looks behind an absent chunk.
///
/// A pure state machine: ask next_probes(), probe these in parallel, report() each answer in any
/// order, repeat until done(). Threads: one at a time. Limits: memory of O(probes_max).
class PrefixSearch {
 public:
  static constexpr std::uint32_t kCountMax = 1U << 20;

  struct Options {
    std::uint32_t count = 0;        ///< Chunks of the request; clamped to kCountMax.
    std::uint32_t probes_max = 34;  ///< In parallel; clamped to at least 2.
    std::uint32_t at_least = 0;     ///< So many leading chunks are known to be present.
    /// The expected result, where there is one (a cached or a previous match).
    std::optional<std::uint32_t> hint = std::nullopt;
  };

  explicit PrefixSearch(const Options& options);

  /// The indices to probe now, ascending, at most probes_max; each index is given once in a
  /// search. Empty while answers are outstanding and when done.
  [[nodiscard]] std::vector<std::uint32_t> next_probes();
  /// The answer for one index of the last next_probes(); others are ignored. A probe that failed
  /// is best reported as absent: it can only shorten the match.
  void report(std::uint32_t index, bool present);

  /// True when all is known: at the end of a round, or as soon as the chunk right behind what is
  /// known to be present is absent (then outstanding probes may be cancelled).
  [[nodiscard]] bool done() const;
  /// The number of leading chunks present. Requires done().
  [[nodiscard]] std::uint32_t result() const { return absent_; }

  [[nodiscard]] std::uint32_t rounds() const { return rounds_; }
  [[nodiscard]] std::uint32_t probes() const { return probes_; }  ///< Given out so far.

 private:
  struct Probe {
    std::uint32_t index = 0;
    std::optional<bool> present;
  };

  [[nodiscard]] std::vector<std::uint32_t> choose() const;
  void end_round();

  const std::uint32_t probes_max_;
  const std::optional<std::uint32_t> hint_;
  /// Invariant: [0, present_) is taken as present, absent_ as absent (or as the end).
  std::uint32_t present_;
  std::uint32_t absent_;
  std::vector<Probe> round_;  ///< Of the running round, ascending; empty between rounds.
  std::uint32_t outstanding_ = 0;
  std::uint32_t rounds_ = 0;
  std::uint32_t probes_ = 0;
};

}  // namespace objectcache::plan
