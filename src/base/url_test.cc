#include "base/url.h"

#include <gtest/gtest.h>

#include <string>

namespace objectcache {
namespace {

TEST(Url, TakesApartWhatStoresAreCalled) {
  const auto memory = parse_url("memory:");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->scheme, "memory");
  EXPECT_TRUE(memory->path.empty());

  const auto file = parse_url("file:/var/cache/kv?durability=fsync&threads=4");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->path, "/var/cache/kv");
  EXPECT_EQ(file->parameters,
            (std::vector<UrlParameter>{{"durability", "fsync"}, {"threads", "4"}}));
  EXPECT_EQ(parse_url("file:kv")->path, "kv");
  EXPECT_EQ(parse_url("file:///var/kv")->path, "/var/kv");
  EXPECT_EQ(parse_url("FILE:/a%20b%3F")->path, "/a b?");

  const auto s3 = parse_url("s3://bucket/team/kv?endpoint=http://10.0.0.1:8000/base&region=eu-1");
  ASSERT_TRUE(s3);
  EXPECT_EQ(s3->authority, "bucket");
  EXPECT_EQ(s3->path, "/team/kv");
  EXPECT_EQ(s3->parameters[0].value, "http://10.0.0.1:8000/base");
  EXPECT_EQ(parse_url("s3://bucket")->path, "");
  EXPECT_EQ(parse_url("s3://bucket?region=x")->authority, "bucket");
}

TEST(Url, DecodesValuesStrictly) {
  EXPECT_EQ(parse_url("memory:?a=x%26y%3dz+%c3%A4")->parameters[0].value, "x&y=z+\xc3\xa4");
  EXPECT_EQ(parse_url("memory:?a=")->parameters[0].value, "");
  EXPECT_EQ(parse_url("memory:?a=b=c")->parameters[0].value, "b=c");
}

struct BadUrl {
  std::string_view text;
  std::string_view message_part;
};

class BadUrlTest : public testing::TestWithParam<BadUrl> {};

TEST_P(BadUrlTest, IsRefusedWithItsReason) {
  const auto url = parse_url(GetParam().text);
  ASSERT_FALSE(url) << GetParam().text;
  EXPECT_EQ(url.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(url.error().message.find(GetParam().message_part), std::string::npos)
      << url.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadUrlTest,
    testing::Values(BadUrl{"", "scheme"}, BadUrl{"/dir", "scheme"}, BadUrl{":", "scheme"},
                    BadUrl{"1a:", "scheme"}, BadUrl{"f ile:", "%20"}, BadUrl{"file:/a\nb", "%0A"},
                    BadUrl{"file:/a#b", "%23"}, BadUrl{"file:/a%", "%25"},
                    BadUrl{"file:/a%2", "%25"}, BadUrl{"file:/a%zz", "%25"},
                    BadUrl{"file:/a%00b", "%00"}, BadUrl{"s3://key:secret@b/", "credentials"},
                    BadUrl{"s3://a%41/", "encoded"}, BadUrl{"memory:?", "name=value"},
                    BadUrl{"memory:?a", "name=value"}, BadUrl{"memory:?=1", "name=value"},
                    BadUrl{"memory:?A=1", "lower-case"}, BadUrl{"memory:?a=1&", "name=value"},
                    BadUrl{"memory:?a=1&a=1", "'a' is given twice"},
                    BadUrl{"memory:?a=%4", "parameter 'a'"}));

TEST(Url, BoundsItsInput) {
  EXPECT_FALSE(parse_url("file:/" + std::string(70'000, 'a')));
  std::string many = "memory:?";
  for (int i = 0; i < 256; ++i) many += "p" + std::to_string(i) + "=1&";
  EXPECT_TRUE(parse_url(many.substr(0, many.size() - 1)));
  EXPECT_FALSE(parse_url(many + "last=1"));
}

TEST(Url, MessagesDoNotRepeatValues) {
  const auto url = parse_url("s3://b/?secret=hunter2%zz");
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().to_string().find("hunter2"), std::string::npos);
}

TEST(Url, DisplayLeavesParametersOutAndReadsBack) {
  const auto url = parse_url("s3://b/x%20y/z?secret_key=hunter2");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->display(), "s3://b/x%20y/z");
  EXPECT_EQ(parse_url(url->display())->path, url->path);
  EXPECT_EQ(parse_url(parse_url("file:////a")->display())->path, "//a");
}

}  // namespace
}  // namespace objectcache
