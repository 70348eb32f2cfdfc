#include "base/random.h"

#include <gtest/gtest.h>

#include <array>

namespace objectcache {
namespace {

TEST(Random, MatchesTheReferenceAlgorithms) {
  // The first output of xoshiro256** is rotl(state[1] * 5, 7) * 9, where state[1] is the second
  // output of splitmix64; for seed 0 that is published as 0x6e789e6aa1b965f4.
  EXPECT_EQ(Random(0).next(), std::rotl(std::uint64_t{0x6e789e6aa1b965f4} * 5, 7) * 9);
}

TEST(Random, SameSeedSameNumbersOtherSeedOthers) {
  Random a(7);
  Random b(7);
  Random c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto x = a.next();
    EXPECT_EQ(x, b.next());
    differs = differs || x != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, BelowIsEvenAndInRange) {
  Random random(1);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts.at(random.below(6));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Random, UnitAndChanceStayInTheirBounds) {
  Random random(2);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double x = random.unit();
    EXPECT_GE(x, 0.0);
    EXPECT_LT(x, 1.0);
    if (random.chance(0.25)) ++hits;
    EXPECT_FALSE(random.chance(0.0));
    EXPECT_TRUE(random.chance(1.0));
  }
  EXPECT_NEAR(hits, 2'500, 250);
}

}  // namespace
}  // namespace objectcache
