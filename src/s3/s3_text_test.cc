#include <gtest/gtest.h>

#include "s3/http_date.h"
#include "s3/ranges.h"
#include "s3/uri.h"

namespace objectcache::s3 {
namespace {

// ---------------------------------------------------------------- dates

TEST(Dates, EachFormRoundTrips) {
  const WallTime time = *parse_amz_date("20130524T010203Z");
  EXPECT_EQ(format_amz_date(time).view(), "20130524T010203Z");
  EXPECT_EQ(format_amz_date(time).day(), "20130524");
  EXPECT_EQ(format_http_date(time), "Fri, 24 May 2013 01:02:03 GMT");
  EXPECT_EQ(parse_http_date("Fri, 24 May 2013 01:02:03 GMT"), time);
  EXPECT_EQ(format_iso8601(time), "2013-05-24T01:02:03.000Z");
  EXPECT_EQ(parse_iso8601("2013-05-24T01:02:03.000Z"), time);
  EXPECT_EQ(parse_iso8601("2013-05-24T01:02:03Z"), time);
  EXPECT_EQ(parse_iso8601("2013-05-24T01:02:03+00:00"), time);
  EXPECT_EQ(parse_iso8601("2013-05-24T01:02:03.25Z"), time + std::chrono::milliseconds(250));
  EXPECT_EQ(parse_iso8601("2013-05-24T01:02:03.123456789Z"), time + std::chrono::milliseconds(123));
  EXPECT_EQ(format_iso8601(time + std::chrono::milliseconds(7)), "2013-05-24T01:02:03.007Z");
}

TEST(Dates, MatchKnownSecondsSince1970) {
  EXPECT_EQ(parse_amz_date("19700101T000000Z"), WallTime{});
  EXPECT_EQ(*parse_amz_date("20000229T120000Z"), WallTime{} + std::chrono::seconds(951825600));
  EXPECT_EQ(format_amz_date(WallTime{} - std::chrono::seconds(1)).view(), "19691231T235959Z");
}

TEST(Dates, MalformedOnesAreRefused) {
  for (const char* text :
       {"", "20130524", "20130524T010203", "20131324T010203Z", "20130230T010203Z",
        "20130524T240203Z", "20130524T016003Z", "20130524T010203Zx", "2013 524T010203Z",
        "-0130524T010203Z", "00000101T000000Z", "99990101T000000Z"}) {
    EXPECT_EQ(parse_amz_date(text), std::nullopt) << text;
  }
  for (const char* text : {"", "Fri, 24 May 2013 01:02:03", "Fri, 24 Foo 2013 01:02:03 GMT",
                           "Friday, 24-May-13 01:02:03 GMT", "Fri May 24 01:02:03 2013",
                           "Fri, 24 May 2013 01:02:03 GMT "}) {
    EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
  }
  for (const char* text :
       {"", "2013-05-24", "2013-05-24T01:02:03", "2013-05-24T01:02:03.Z", "2013-05-24 01:02:03Z",
        "2013-05-24T01:02:03+01:00", "2013-05-24T01:02:03.1234567890123Z"}) {
    EXPECT_EQ(parse_iso8601(text), std::nullopt) << text;
  }
}

// ---------------------------------------------------------------- encoding

TEST(Encoding, IsStrict) {
  EXPECT_EQ(path_encoded("a/b c+d~e_f-g.h"), "a/b%20c%2Bd~e_f-g.h");
  EXPECT_EQ(query_encoded("a/b=c&d"), "a%2Fb%3Dc%26d");
  EXPECT_EQ(path_encoded("\xc3\xa9%"), "%C3%A9%25");
  EXPECT_EQ(path_encoded(std::string_view("\0\xff", 2)), "%00%FF");
  EXPECT_EQ(percent_decoded("a%2fb%2Fc+d"), "a/b/c+d");
  EXPECT_EQ(percent_decoded("%"), std::nullopt);
  EXPECT_EQ(percent_decoded("%4"), std::nullopt);
  EXPECT_EQ(percent_decoded("%4x"), std::nullopt);
  EXPECT_EQ(percent_decoded("%41"), "A");
}

TEST(QueryBuilder, SortsByEncodedName) {
  QueryBuilder query;
  query.add("prefix", "a/b").add("list-type", "2").add("delimiter", "/").add("uploads");
  EXPECT_EQ(query.str(), "delimiter=%2F&list-type=2&prefix=a%2Fb&uploads=");
  EXPECT_EQ(QueryBuilder().str(), "");
}

TEST(ParseQuery, SplitsDecodesAndIsBounded) {
  const auto pairs = parse_query("b=2&a=%2F&c&&d=");
  ASSERT_TRUE(pairs.has_value());
  ASSERT_EQ(pairs->size(), 4U);
  EXPECT_EQ((*pairs)[0], std::pair(std::string("b"), std::string("2")));
  EXPECT_EQ((*pairs)[1], std::pair(std::string("a"), std::string("/")));
  EXPECT_EQ((*pairs)[2], std::pair(std::string("c"), std::string()));
  EXPECT_EQ((*pairs)[3], std::pair(std::string("d"), std::string()));
  EXPECT_EQ(parse_query("a=%g0"), std::nullopt);
  EXPECT_TRUE(parse_query("a&b&c", 3).has_value());
  EXPECT_EQ(parse_query("a&b&c&d", 3), std::nullopt);
}

// ---------------------------------------------------------------- endpoints

TEST(Endpoint, ReadsSchemeHostPortAndBase) {
  const auto plain = parse_endpoint("http://127.0.0.1:7480");
  ASSERT_TRUE(plain.has_value());
  EXPECT_FALSE(plain->tls);
  EXPECT_EQ(plain->host, "127.0.0.1");
  EXPECT_EQ(plain->port, 7480);
  EXPECT_EQ(plain->authority(), "127.0.0.1:7480");
  EXPECT_EQ(plain->base_path, "");

  const auto base = parse_endpoint("https://store.example.com/s3/gate way/");
  ASSERT_TRUE(base.has_value());
  EXPECT_TRUE(base->tls);
  EXPECT_EQ(base->port, 443);
  EXPECT_EQ(base->authority(), "store.example.com");
  EXPECT_EQ(base->base_path, "/s3/gate%20way");
  EXPECT_EQ(base->url(), "https://store.example.com/s3/gate%20way");

  const auto v6 = parse_endpoint("http://[::1]:80/");
  ASSERT_TRUE(v6.has_value());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->authority(), "[::1]");
  EXPECT_EQ(v6->base_path, "");
}

TEST(Endpoint, RefusesWhatItDoesNotUnderstand) {
  for (const char* url : {"", "store", "ftp://a", "http://", "http://:80", "http://a:0",
                          "http://a:65536", "http://a:x", "http://a:", "http://a b", "http://a?x=1",
                          "http://a/#f", "http://[::1", "http://[zz]", "http://a/%4"}) {
    const auto result = parse_endpoint(url);
    ASSERT_FALSE(result.has_value()) << url;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument) << url;
  }
  const auto secret = parse_endpoint("http://user:hunter2@host");
  ASSERT_FALSE(secret.has_value());
  EXPECT_EQ(secret.error().to_string().find("hunter2"), std::string::npos);
}

TEST(BucketAddress, BothStyles) {
  const Endpoint endpoint = *parse_endpoint("http://store:7480/base");
  const auto path = BucketAddress::create(endpoint, "kv-cache", AddressingStyle::kPath);
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->host(), "store:7480");
  EXPECT_EQ(path->bucket_path(), "/base/kv-cache");
  EXPECT_EQ(path->object_path("a/b c"), "/base/kv-cache/a/b%20c");

  const auto host = BucketAddress::create(endpoint, "kv-cache", AddressingStyle::kVirtualHost);
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ(host->host(), "kv-cache.store:7480");
  EXPECT_EQ(host->bucket_path(), "/base/");
  EXPECT_EQ(host->object_path("a"), "/base/a");
}

TEST(BucketAddress, RefusesBadNames) {
  const Endpoint endpoint = *parse_endpoint("http://store");
  for (const char* name : {"", "ab", "-abc", "abc-", "a..b", "a/b", "a b", "a%b"}) {
    EXPECT_FALSE(BucketAddress::create(endpoint, name, AddressingStyle::kPath)) << name;
  }
  EXPECT_FALSE(BucketAddress::create(endpoint, std::string(64, 'a'), AddressingStyle::kPath));
  EXPECT_TRUE(BucketAddress::create(endpoint, "Old_Bucket", AddressingStyle::kPath));
  EXPECT_FALSE(BucketAddress::create(endpoint, "Old_Bucket", AddressingStyle::kVirtualHost));
}

// ---------------------------------------------------------------- ranges

TEST(ContentRange, ReadsAndRefuses) {
  const auto full = parse_content_range("bytes 10-19/100");
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->range, (ByteRange{.offset = 10, .length = 10}));
  EXPECT_EQ(full->object_bytes, 100U);
  EXPECT_EQ(parse_content_range("BYTES 0-0/*")->object_bytes, std::nullopt);
  EXPECT_EQ(parse_content_range("bytes */7")->range, std::nullopt);
  for (const char* text :
       {"", "bytes", "bytes ", "bytes 1-2", "bytes 2-1/9", "bytes 0-9/9", "bytes -1/9", "bytes */*",
        "bytes=0-1/9", "items 0-1/9", "bytes 0-1/9 ", "bytes 0-18446744073709551615/*",
        "bytes 0-99999999999999999999/*", "bytes +0-1/9", "bytes 0-1/-9"}) {
    EXPECT_EQ(parse_content_range(text).has_value(), false) << text;
  }
  EXPECT_EQ(format_content_range({.offset = 10, .length = 10}, 100), "bytes 10-19/100");
  EXPECT_EQ(format_range({.offset = 0, .length = 1024}), "bytes=0-1023");
}

TEST(JudgeRangeAnswer, DecidesAsTheServersOfThisWorldNeedIt) {
  const ByteRange asked{.offset = 10, .length = 10};
  using V = RangeVerdict;
  struct Case {
    int status;
    std::optional<std::string_view> content_range;
    std::optional<std::uint64_t> length;
    V expected;
  };
  const Case cases[] = {
      {206, "bytes 10-19/100", 10, V::kExact},
      {206, "bytes 10-19/*", 10, V::kExact},
      {206, "bytes 10-19/100", std::nullopt, V::kExact},
      {200, "bytes 10-19/100", 10, V::kExact},  // rclone
      {200, std::nullopt, 10, V::kRangeIgnored},
      {200, std::nullopt, 100, V::kRangeIgnored},
      {206, std::nullopt, 10, V::kContradictory},
      {206, "bytes 10-19/100", 11, V::kContradictory},
      {206, "bytes 10-19/100", 9, V::kContradictory},
      {206, "bytes 0-9/100", 10, V::kContradictory},
      {206, "bytes 10-20/100", 11, V::kContradictory},
      {206, "bytes 10-14/15", 5, V::kObjectShorter},
      {206, "bytes 10-14/100", 5, V::kContradictory},
      {206, "bytes 10-14/*", 5, V::kContradictory},
      {206, "nonsense", 10, V::kContradictory},
      {206, "bytes */100", 10, V::kContradictory},
      {204, "bytes 10-19/100", 10, V::kContradictory},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(judge_range_answer(asked, c.status, c.content_range, c.length).verdict, c.expected)
        << c.status << " " << c.content_range.value_or("none");
  }
  EXPECT_EQ(judge_range_answer(asked, 206, "bytes 10-19/100", 10).object_bytes, 100U);
}

TEST(ParseRange, AsAServerReadsIt) {
  using Kind = RangeRequest::Kind;
  const auto part = [](std::string_view text) {
    const auto r = parse_range(text, 100);
    EXPECT_EQ(r.kind, Kind::kPart) << text;
    return r.range;
  };
  EXPECT_EQ(part("bytes=0-9"), (ByteRange{.offset = 0, .length = 10}));
  EXPECT_EQ(part("bytes=90-200"), (ByteRange{.offset = 90, .length = 10}));
  EXPECT_EQ(part("bytes=90-"), (ByteRange{.offset = 90, .length = 10}));
  EXPECT_EQ(part("bytes=-7"), (ByteRange{.offset = 93, .length = 7}));
  EXPECT_EQ(part("bytes=-700"), (ByteRange{.offset = 0, .length = 100}));
  EXPECT_EQ(parse_range("bytes=100-", 100).kind, Kind::kUnsatisfiable);
  EXPECT_EQ(parse_range("bytes=-0", 100).kind, Kind::kUnsatisfiable);
  EXPECT_EQ(parse_range("bytes=0-0", 0).kind, Kind::kUnsatisfiable);
  EXPECT_EQ(parse_range("bytes=0-1,3-4", 100).kind, Kind::kMultiple);
  for (const char* text :
       {"", "bytes", "bytes=", "bytes=a-b", "bytes=5-4", "lines=0-1", "bytes=-", "bytes 0-1"}) {
    EXPECT_EQ(parse_range(text, 100).kind, Kind::kWhole) << text;
  }
}

}  // namespace
}  // namespace objectcache::s3
