#include "store/open_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "objectcache/cache.h"
#include "store/file/file_url.h"
#include "store/memory/memory_url.h"
#include "store/testing/temp_folder.h"

namespace objectcache::store {
namespace {

Result<std::unique_ptr<ObjectStore>> open(const std::string& url) {
  return open_store(url, Environment{});
}

void expect_refused(const std::string& url, ErrorCode code, const std::string& part) {
  const auto store = open(url);
  ASSERT_FALSE(store) << url;
  EXPECT_EQ(store.error().code, code) << store.error().to_string();
  EXPECT_NE(store.error().to_string().find(part), std::string::npos) << store.error().to_string();
}

TEST(OpenStore, OpensWhatTheUrlNames) {
  EXPECT_EQ(open("memory:").value()->traits().url, "memory:");
  const TempFolder folder;
  const auto file = open("file:" + folder.path() + "/kv?durability=fsync&min_free=0");
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ((*file)->traits().url, "file:" + folder.path() + "/kv");
  EXPECT_TRUE((*file)->traits().durable_after_put);
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() + "/kv"));
}

TEST(OpenStore, OpensS3WithoutTalkingToIt) {
  Environment environment;
  environment.variables = {{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "S"}};
  const auto s3 = open_store("s3://bkt/kv?endpoint=http://127.0.0.1:1", environment);
  ASSERT_TRUE(s3) << s3.error().to_string();
  EXPECT_EQ((*s3)->traits().url, "s3://bkt/kv");
  expect_refused("s3://bkt?regin=x", ErrorCode::kInvalidArgument, "did you mean 'region'?");
}

TEST(OpenStore, RefusesByName) {
  expect_refused("files:/tmp", ErrorCode::kInvalidArgument, "did you mean 'file:'?");
  expect_refused("gopher:/tmp", ErrorCode::kInvalidArgument, "the schemes are: memory, file, s3");
  expect_refused("/tmp", ErrorCode::kInvalidArgument, "scheme");
  expect_refused("memory:?capcity=1GiB", ErrorCode::kInvalidArgument, "did you mean 'capacity'?");
  expect_refused("memory:name", ErrorCode::kInvalidArgument, "memory:");
  expect_refused("file:", ErrorCode::kInvalidArgument, "directory is missing");
  expect_refused("file://host/dir", ErrorCode::kInvalidArgument, "file:/dir");
  expect_refused("file:/tmp/x?durability=some", ErrorCode::kInvalidArgument, "none, fsync");
  expect_refused("file:/no/such/place", ErrorCode::kNotFound, "file:/no/such/place");
}

TEST(FileUrl, EveryParameterArrives) {
  const auto options = file_options(parse_url("file:kv?durability=fsync&min_free=2GiB&threads=3&"
                                              "isolate=on&direct=on&create=off&stale_temp_age=2min")
                                        .value());
  ASSERT_TRUE(options) << options.error().to_string();
  EXPECT_EQ(options->directory, "kv");
  EXPECT_TRUE(options->fsync);
  EXPECT_EQ(options->min_free_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(options->threads, 3U);
  EXPECT_TRUE(options->isolate);
  EXPECT_TRUE(options->direct);
  EXPECT_FALSE(options->create_directory);
  EXPECT_EQ(options->stale_temp_age, std::chrono::minutes(2));
  const auto defaults = file_options(parse_url("file:kv").value());
  EXPECT_FALSE(defaults->min_free_bytes.has_value());
  EXPECT_FALSE(defaults->fsync);
}

TEST(MemoryUrl, EveryParameterArrives) {
  const auto options = memory_options(parse_url("memory:?capacity=1MiB&objects_max=7").value());
  ASSERT_TRUE(options);
  EXPECT_EQ(options->capacity_bytes, 1U << 20);
  EXPECT_EQ(options->objects_max, 7U);
}

}  // namespace
}  // namespace objectcache::store
