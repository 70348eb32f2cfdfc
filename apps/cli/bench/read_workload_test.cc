#include "cli/bench/read_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace objectcache::cli {
namespace {

using ::testing::HasSubstr;

ReadWorkload sample() {
  ReadWorkload out;
  out.url = "s3://b/p?endpoint=http://127.0.0.1:1";
  out.host = "127.0.0.1";
  out.port = 1;
  out.bucket = "b";
  out.key_prefix = "p/";
  out.region = "r";
  out.connections = 4;
  out.length = 4096;
  out.warm_up = 1;
  out.objects = {{.key = "k",
                  .path = "/b/p/k",
                  .amz_date = "20260101T000000Z",
                  .authorization = "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=b, Signature=c"}};
  out.ranges = {{0, 8192, 0x00c0ffee}, {0, 0, 1}};
  return out;
}

TEST(ReadWorkload, comes_back_as_it_was_written) {
  const ReadWorkload in = sample();
  auto out = parse_workload(format_workload(in));
  ASSERT_TRUE(out) << out.error().to_string();
  EXPECT_EQ(out->url, in.url);
  EXPECT_EQ(out->port, in.port);
  EXPECT_FALSE(out->tls);
  EXPECT_EQ(out->ca_file, "");
  EXPECT_EQ(out->objects[0].authorization, in.objects[0].authorization);
  ASSERT_EQ(out->ranges.size(), 2U);
  EXPECT_EQ(out->ranges[0].offset, 8192U);
  EXPECT_EQ(out->ranges[0].crc32c, 0x00c0ffeeU);
  EXPECT_EQ(out->measured_bytes(), 4096U);
}

TEST(ReadWorkload, refuses_what_it_does_not_know) {
  for (const char* line :
       {"colour blue\n", "port x\n", "port 70000\n", "tls 2\n", "length 0\n", "connections 0\n",
        "object only-a-key\n", "range 1 0 00000000\n", "range 0 0 xyz\n"}) {
    auto out = parse_workload(format_workload(sample()) + line);
    ASSERT_FALSE(out) << line;
    EXPECT_THAT(out.error().message, HasSubstr("line")) << line;
  }
}

TEST(ReadWorkload, refuses_one_without_anything_to_measure) {
  ReadWorkload work = sample();
  work.warm_up = 2;
  EXPECT_FALSE(parse_workload(format_workload(work)));
  EXPECT_FALSE(parse_workload(""));
}

TEST(ClientResult, is_the_last_line_of_the_output) {
  auto result =
      parse_client_result("noise\n" + format_client_result({.bytes = 5, .seconds = 2, .cpu_s = 1}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->bytes, 5U);
  EXPECT_DOUBLE_EQ(result->seconds, 2);
  EXPECT_DOUBLE_EQ(result->cpu_s, 1);
}

TEST(ClientResult, is_not_guessed) {
  for (const char* text :
       {"", "done", "[]", "{\"bytes\": 1}", "{\"bytes\": 0, \"seconds\": 1, \"cpu_s\": 1}",
        "{\"bytes\": \"1\", \"seconds\": 1, \"cpu_s\": 1}"}) {
    EXPECT_FALSE(parse_client_result(text)) << text;
  }
}

}  // namespace
}  // namespace objectcache::cli
