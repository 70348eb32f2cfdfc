#include "base/parameters.h"

#include <gtest/gtest.h>

#include <string>

namespace objectcache {
namespace {

using std::chrono::milliseconds;

TEST(ParseDuration, KnowsItsUnits) {
  EXPECT_EQ(parse_duration("250ms").value(), milliseconds(250));
  EXPECT_EQ(parse_duration("1.5s").value(), milliseconds(1500));
  EXPECT_EQ(parse_duration("2min").value(), std::chrono::minutes(2));
  EXPECT_EQ(parse_duration("36500d").value(), std::chrono::hours(24 * 36500));
  EXPECT_EQ(parse_duration("0").value(), Duration(0));
  for (const auto* text :
       {"", "5", "ms", "-1s", "+1s", "1 s", "1e3s", "1..5s", "1s ", "nan", "infs", "40000d", "1m",
        "0x1s", "99999999999999999999999999999999999999999999s"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(ParseSize, KnowsItsUnitsAndKeepsPlainNumbersExact) {
  EXPECT_EQ(parse_size("4096").value(), 4096U);
  EXPECT_EQ(parse_size("18446744073709551615").value(), UINT64_MAX);
  EXPECT_EQ(parse_size("64MiB").value(), 64U << 20);
  EXPECT_EQ(parse_size("1.5gb").value(), 1'500'000'000U);
  EXPECT_EQ(parse_size("0B").value(), 0U);
  for (const auto* text :
       {"", "MiB", "-1", "1XB", "1.5.5MB", "9999999999TiB", "18446744073709551616"}) {
    EXPECT_FALSE(parse_size(text) && parse_size(text).value() < 1'000'000'000'000'000'000U) << text;
  }
  EXPECT_FALSE(parse_size("9999999999TiB"));
  EXPECT_FALSE(parse_size("1XB"));
}

TEST(ParseRate, CountsBitsAndBytes) {
  EXPECT_DOUBLE_EQ(parse_rate("3.1gbit").value(), 3.1e9 / 8);
  EXPECT_DOUBLE_EQ(parse_rate("800Mbit").value(), 1e8);
  EXPECT_DOUBLE_EQ(parse_rate("1.2GB/s").value(), 1.2e9);
  EXPECT_DOUBLE_EQ(parse_rate("1MiB/s").value(), 1048576.0);
  for (const auto* text : {"", "5", "1gb", "0gbit", "-1gbit", "1gbit/s", "1e30gbit"}) {
    EXPECT_FALSE(parse_rate(text)) << text;
  }
}

TEST(ParseFlag, TakesBothWords) {
  for (const auto* text : {"on", "true", "yes", "1"}) EXPECT_TRUE(parse_flag(text).value());
  for (const auto* text : {"off", "false", "no", "0"}) EXPECT_FALSE(parse_flag(text).value());
  for (const auto* text : {"", "On", "2", "enabled"}) EXPECT_FALSE(parse_flag(text)) << text;
}

enum class Durability { kNone, kFsync };
struct Options {
  Duration timeout = milliseconds(1);
  std::uint64_t min_free = 2;
  double link_rate = 3;
  bool verify = true;
  std::uint32_t threads = 4;
  Durability durability = Durability::kNone;
  std::string region = "eu";
};

Result<Options> read(const std::string& query) {
  const auto url = parse_url("memory:" + query);
  if (!url) return std::unexpected(url.error());
  Options out;
  ParameterReader in(url->parameters);
  in.duration("timeout", out.timeout);
  in.size("min_free", out.min_free);
  in.rate("link_rate", out.link_rate);
  in.flag("verify", out.verify);
  in.count("threads", 1, 64, out.threads);
  in.choice("durability", {{"none", Durability::kNone}, {"fsync", Durability::kFsync}},
            out.durability);
  in.text("region", out.region);
  if (in.has("region") && out.region.empty()) in.refuse("region", "must not be empty");
  if (auto done = in.finish(); !done) return std::unexpected(done.error());
  return out;
}

TEST(ParameterReader, FillsOptionsAndKeepsDefaults) {
  const auto some = read("?timeout=2s&threads=8&durability=fsync");
  ASSERT_TRUE(some) << some.error().to_string();
  EXPECT_EQ(some->timeout, std::chrono::seconds(2));
  EXPECT_EQ(some->threads, 8U);
  EXPECT_EQ(some->durability, Durability::kFsync);
  EXPECT_EQ(some->min_free, 2U);
  const auto rest = read("?min_free=1KiB&link_rate=8kbit&verify=off&region=us");
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->min_free, 1024U);
  EXPECT_DOUBLE_EQ(rest->link_rate, 1000);
  EXPECT_FALSE(rest->verify);
  EXPECT_EQ(rest->region, "us");
}

void expect_refused(const std::string& query, const std::string& line) {
  const auto result = read(query);
  ASSERT_FALSE(result) << query;
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().to_string(), "read parameter " + line);
}

TEST(ParameterReader, ErrorsNameTheParameterAndWhatWouldBeRight) {
  expect_refused("?timeout=2",
                 "timeout: invalid_argument: '2' is not a time such as 250ms, 1.5s or 2min");
  expect_refused("?threads=65",
                 "threads: invalid_argument: '65' is not a whole number from 1 to 64");
  expect_refused("?threads=0", "threads: invalid_argument: '0' is not a whole number from 1 to 64");
  expect_refused("?durability=maybe",
                 "durability: invalid_argument: 'maybe' is none of: none, fsync");
  expect_refused("?region=", "region: invalid_argument: must not be empty");
}

TEST(ParameterReader, UnknownNamesAreRefusedWithTheNearest) {
  expect_refused("?durabilty=fsync",
                 "durabilty: invalid_argument: unknown; did you mean 'durability'?");
  expect_refused("?xyz=1",
                 "xyz: invalid_argument: unknown; the parameters here are: timeout, min_free, "
                 "link_rate, verify, threads, durability, region");
}

TEST(ParameterReader, TheFirstErrorStaysEvenBesideUnknownNames) {
  expect_refused("?nonsense=1&timeout=x&threads=0",
                 "timeout: invalid_argument: 'x' is not a time such as 250ms, 1.5s or 2min");
}

TEST(NearestName, NeedsSomeLikeness) {
  EXPECT_EQ(nearest_name("regoin", {"region", "profile"}), "region");
  EXPECT_EQ(nearest_name("abc", {"xyz"}), "");
  EXPECT_EQ(nearest_name(std::string(10'000, 'a'), {"a"}), "");
}

}  // namespace
}  // namespace objectcache
