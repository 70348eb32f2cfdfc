#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace objectcache {

/// A small seedable source of random numbers (xoshiro256**, seeded by splitmix64) for jitter,
/// sampling and tests: the same seed gives the same numbers everywhere. Never for secrets.
///
/// Threads: one at a time.
class Random {
 public:
  using result_type = std::uint64_t;  // So that the algorithms of <random> accept it.

  explicit constexpr Random(std::uint64_t seed) {
    for (auto& word : state_) {
      seed += 0x9e3779b97f4a7c15U;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
      word = z ^ (z >> 31);
    }
  }

  /// Uniform over all 64-bit numbers.
  constexpr std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  /// Uniform over 0 to `end` - 1. Requires: `end` > 0.
  constexpr std::uint64_t below(std::uint64_t end) {
    // Numbers of the incomplete last round would favour small results.
    const std::uint64_t threshold = (0 - end) % end;
    for (;;) {
      const std::uint64_t x = next();
      if (x >= threshold) return x % end;
    }
  }
  /// Uniform over [0, 1).
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// True in `probability` of the cases.
  constexpr bool chance(double probability) { return unit() < probability; }

  constexpr std::uint64_t operator()() { return next(); }
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return UINT64_MAX; }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace objectcache
