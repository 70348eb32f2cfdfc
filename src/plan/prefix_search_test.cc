#include "plan/prefix_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

namespace objectcache::plan {
namespace {

using Presence = std::function<bool(std::uint32_t)>;

/// Runs a search to its end, checking the promises of the header on the way.
PrefixSearch run(const PrefixSearch::Options& options, const Presence& present,
                 bool backwards = false) {
  PrefixSearch search(options);
  std::set<std::uint32_t> seen;
  while (!search.done()) {
    auto probes = search.next_probes();
    EXPECT_FALSE(probes.empty());
    if (probes.empty()) break;
    EXPECT_LE(probes.size(), std::max(options.probes_max, 2U));
    EXPECT_TRUE(std::ranges::is_sorted(probes));
    EXPECT_TRUE(search.next_probes().empty()) << "answers are outstanding";
    if (backwards) std::ranges::reverse(probes);
    for (const std::uint32_t index : probes) {
      EXPECT_GE(index, options.at_least);
      EXPECT_LT(index, options.count);
      EXPECT_TRUE(seen.insert(index).second) << "index " << index << " probed twice";
      search.report(index, present(index));
    }
  }
  EXPECT_TRUE(search.next_probes().empty());
  return search;
}

PrefixSearch run_length(const PrefixSearch::Options& options, std::uint32_t length) {
  return run(options, [=](std::uint32_t index) { return index < length; });
}

TEST(PrefixSearch, EveryLengthOfEveryCountIsFound) {
  for (std::uint32_t count = 0; count <= 300; ++count) {
    for (std::uint32_t length = 0; length <= count; ++length) {
      const auto search = run_length({.count = count, .probes_max = 18}, length);
      ASSERT_EQ(search.result(), length) << "of " << count;
      ASSERT_LE(search.rounds(), 2U) << "of " << count;  // 300 <= 18 x 18.
    }
  }
}

TEST(PrefixSearch, FewProbesTakeMoreRounds) {
  for (const std::uint32_t probes : {2U, 3U, 4U, 7U}) {
    for (std::uint32_t length = 0; length <= 300; ++length) {
      const auto search = run_length({.count = 300, .probes_max = probes}, length);
      ASSERT_EQ(search.result(), length);
      // Each round leaves at most 1/(probes + 1) of the candidates, rounded up; the first a bit
      // more, since it spends two probes on the ends.
      std::uint32_t rounds_max = 1;
      for (std::uint32_t left = probes > 2 ? 300 / (probes - 1) : 298; left > 0;
           left = left / (probes + 1)) {
        ++rounds_max;
      }
      ASSERT_LE(search.rounds(), rounds_max) << length << " with " << probes;
    }
  }
}

TEST(PrefixSearch, AThousandChunksTakeTwoRounds) {
  for (std::uint32_t length = 0; length <= 1024; ++length) {
    const auto tight = run_length({.count = 1024, .probes_max = 32}, length);
    ASSERT_EQ(tight.result(), length);
    ASSERT_LE(tight.rounds(), 2U) << length;
    ASSERT_LE(tight.probes(), 64U) << length;
    const auto usual = run_length({.count = 1024}, length);
    ASSERT_EQ(usual.result(), length);
    ASSERT_LE(usual.rounds(), 2U) << length;
    ASSERT_LE(usual.probes(), 68U) << length;
  }
}

TEST(PrefixSearch, AnyHintKeepsTwoRounds) {
  for (std::uint32_t hint = 0; hint <= 1030; hint += 3) {
    for (std::uint32_t length = 0; length <= 1024; length += 7) {
      const auto search = run_length({.count = 1024, .hint = hint}, length);
      ASSERT_EQ(search.result(), length) << "hint " << hint;
      ASSERT_LE(search.rounds(), 2U) << length << ", hint " << hint;
    }
  }
}

TEST(PrefixSearch, CommonCasesTakeOneRound) {
  EXPECT_EQ(run_length({.count = 1024}, 0).rounds(), 1U);
  EXPECT_EQ(run_length({.count = 1024}, 1024).rounds(), 1U);
  for (const std::uint32_t length : {1U, 17U, 500U, 1000U, 1023U}) {
    EXPECT_EQ(run_length({.count = 1024, .hint = length}, length).rounds(), 1U) << length;
  }
  EXPECT_EQ(run_length({.count = 34}, 20).rounds(), 1U);
}

TEST(PrefixSearch, NothingToDo) {
  EXPECT_TRUE(PrefixSearch({.count = 0}).done());
  EXPECT_EQ(PrefixSearch({.count = 0}).result(), 0U);
  const PrefixSearch known({.count = 5, .at_least = 9});
  EXPECT_TRUE(known.done());
  EXPECT_EQ(known.result(), 5U);
}

TEST(PrefixSearch, KnownChunksAreNotProbed) {
  for (std::uint32_t length = 700; length <= 1024; ++length) {
    const auto search = run_length({.count = 1024, .at_least = 700}, length);
    ASSERT_EQ(search.result(), length);
    ASSERT_LE(search.rounds(), 2U);
  }
}

TEST(PrefixSearch, AHoleEndsTheMatchWhereItIsSeen) {
  for (std::uint32_t hole = 0; hole < 300; ++hole) {
    const auto search =
        run({.count = 300, .probes_max = 18}, [=](std::uint32_t index) { return index != hole; });
    // Either the hole was probed, then the match ends there, or it was not noticed.
    ASSERT_TRUE(search.result() == hole || search.result() == 300U) << hole;
  }
}

TEST(PrefixSearch, AnyPatternEndsWithAConsistentHint) {
  std::uint64_t state = 88172645463325252ULL;
  const auto random = [&] {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  };
  for (int i = 0; i < 20'000; ++i) {
    const auto count = static_cast<std::uint32_t>(random() % 400);
    std::vector<bool> pattern(count);
    for (std::uint32_t k = 0; k < count; ++k) pattern[k] = random() % 4 != 0;
    std::set<std::uint32_t> probed;
    const auto search = run(
        {.count = count, .probes_max = static_cast<std::uint32_t>(random() % 20)},
        [&](std::uint32_t index) {
          probed.insert(index);
          return pattern[index];
        },
        i % 2 == 0);
    const std::uint32_t result = search.result();
    if (result < count) {
      ASSERT_FALSE(pattern[result]);
    }
    if (result > 0) {
      ASSERT_TRUE(pattern[result - 1]);
    }
    for (const std::uint32_t index : probed) {
      ASSERT_TRUE(index >= result || pattern[index] || result == 0);
    }
  }
}

TEST(PrefixSearch, AnAbsentFirstChunkEndsTheSearchAtOnce) {
  PrefixSearch search({.count = 1024});
  const auto probes = search.next_probes();
  ASSERT_EQ(probes.front(), 0U);
  search.report(probes.back(), false);
  EXPECT_FALSE(search.done());
  search.report(0, false);
  EXPECT_TRUE(search.done());
  EXPECT_EQ(search.result(), 0U);
  search.report(probes[1], true);  // A late answer changes nothing.
  EXPECT_EQ(search.result(), 0U);
}

TEST(PrefixSearch, ForeignAndRepeatedAnswersAreIgnored) {
  PrefixSearch search({.count = 100, .probes_max = 4});
  search.report(5, false);
  const auto probes = search.next_probes();
  search.report(probes[0] + 1, false);
  search.report(probes[0], true);
  search.report(probes[0], false);
  EXPECT_FALSE(search.done());
  EXPECT_TRUE(search.next_probes().empty());
}

}  // namespace
}  // namespace objectcache::plan
