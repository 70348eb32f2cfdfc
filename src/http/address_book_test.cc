#include "http/address_book.h"

#include <gtest/gtest.h>

#include <string>

namespace objectcache::http {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1h};

SocketAddress address(int last) { return *parse_address({"10.0.0." + std::to_string(last), 80}); }

AddressBook book_of_three() {
  AddressBook book({.avoid_min = 1s, .avoid_max = 5s});
  book.replace({address(1), address(2), address(3)});
  return book;
}

TEST(AddressBook, SpreadsConnections) {
  AddressBook book = book_of_three();
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i <= 3; ++i) {
      const SocketAddress chosen = book.choose(kStart);
      EXPECT_TRUE(chosen.same_as(address(i)));
      book.opening(chosen);
    }
  }
  book.closed(address(2));
  EXPECT_TRUE(book.choose(kStart).same_as(address(2)));
}

TEST(AddressBook, LeavesOutWhatFailedForAGrowingWhile) {
  AddressBook book = book_of_three();
  TimePoint now = kStart;
  for (const Duration pause : {1s, 2s, 4s, 5s, 5s}) {
    book.failed(address(1), now);
    book.failed(address(1), now);  // Failed together: counts once.
    EXPECT_EQ(book.avoided(now + pause - 1ms), 1U);
    EXPECT_FALSE(book.choose(now + pause - 1ms).same_as(address(1)));
    EXPECT_EQ(book.avoided(now + pause), 0U);
    EXPECT_TRUE(book.choose(now + pause).same_as(address(1)));
    now += pause;
  }
  book.worked(address(1));
  book.failed(address(1), now);
  EXPECT_EQ(book.avoided(now + 1s), 0U) << "a success resets the pause";
}

TEST(AddressBook, WhenAllFailTheFirstToReturnIsTried) {
  AddressBook book = book_of_three();
  book.failed(address(2), kStart);
  book.failed(address(1), kStart + 1ms);
  book.failed(address(3), kStart + 2ms);
  EXPECT_FALSE(book.any_good(kStart + 3ms));
  EXPECT_TRUE(book.choose(kStart + 3ms).same_as(address(2)));
}

TEST(AddressBook, SlowOnesComeLast) {
  AddressBook book = book_of_three();
  book.slow(address(1), kStart);
  EXPECT_TRUE(book.choose(kStart).same_as(address(2)));
  EXPECT_TRUE(book.choose(kStart + 1s).same_as(address(1)));
  book.replace({address(1)});
  book.slow(address(1), kStart + 1s);
  EXPECT_TRUE(book.any_good(kStart + 1s)) << "there are no others to try first";
}

TEST(AddressBook, ReplacingKeepsWhatIsKnown) {
  AddressBook book = book_of_three();
  book.failed(address(1), kStart);
  book.opening(address(2));
  book.replace({address(2), address(1), address(4)});
  EXPECT_EQ(book.avoided(kStart), 1U);
  EXPECT_TRUE(book.choose(kStart).same_as(address(4)));
  // Of one that left the book nothing is known any more, and nothing breaks.
  book.closed(address(3));
  book.failed(address(3), kStart);
  book.closed(address(4));
  EXPECT_EQ(book.size(), 3U);
}

TEST(SocketAddress, ParsesAndPrints) {
  EXPECT_EQ(parse_address({"127.0.0.1", 7480})->to_string(), "127.0.0.1:7480");
  EXPECT_EQ(parse_address({"::1", 443})->to_string(), "[::1]:443");
  EXPECT_FALSE(parse_address({"localhost", 80}));
  EXPECT_FALSE(parse_address({"1.2.3", 80}));
  EXPECT_FALSE(parse_address({"", 80}));
  EXPECT_FALSE(address(1).same_as(*parse_address({"10.0.0.1", 81})));
}

}  // namespace
}  // namespace objectcache::http
