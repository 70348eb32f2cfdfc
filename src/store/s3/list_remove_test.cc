#include <algorithm>

#include "s3/xml.h"
#include "store/s3/testing/store_fixture.h"

namespace objectcache::store_s3 {
namespace {

TEST(Head, TellsSizeAndVersion) {
  FakeS3World world;
  world.put("a", "12345");
  const auto waited = head(world, "a");
  ASSERT_TRUE(*waited.result) << waited.result->error().to_string();
  ASSERT_TRUE(**waited.result);
  EXPECT_EQ((**waited.result)->size_bytes, 5U);
  EXPECT_EQ((**waited.result)->version.text, world.objects["a"].etag);
}

TEST(Head, AMissAsksOnceWhetherTheBucketIsThere) {
  FakeS3World world;
  for (int i = 0; i < 3; ++i) {
    const auto waited = head(world, "no");
    ASSERT_TRUE(*waited.result);
    EXPECT_FALSE(**waited.result);
  }
  EXPECT_EQ(world.seen.size(), 4U);
  EXPECT_EQ(world.seen[1].request.target, "/bkt");
}

TEST(Head, AMissingBucketIsNotAMiss) {
  FakeS3World world;
  world.treat = [](const FakeS3World::Seen&, std::size_t) { return canned(404, ""); };
  const auto waited = head(world, "no");
  ASSERT_FALSE(*waited.result);
  EXPECT_EQ(waited.result->error().code, ErrorCode::kNotFound);
}

TEST(Remove, TakesAwayAndSucceedsOnNothing) {
  FakeS3World world;
  world.put("a", "x");
  for (int i = 0; i < 2; ++i) {
    Waited<void> waited;
    world.store().remove(world.loop, {"a"}, world.loop.now() + seconds(5), waited.done());
    world.loop.run_to_idle();
    ASSERT_EQ(waited.completions, 1);
    EXPECT_TRUE(*waited.result);
  }
  EXPECT_TRUE(world.objects.empty());
  world.treat = [](const FakeS3World::Seen&, std::size_t) { return canned(404, "NoSuchBucket"); };
  Waited<void> waited;
  world.store().remove(world.loop, {"a"}, world.loop.now() + seconds(5), waited.done());
  world.loop.run_to_idle();
  EXPECT_FALSE(*waited.result);
}

TEST(RemoveMany, OneRequestOrSinglesWhereThereIsNone) {
  for (const bool known : {true, false}) {
    FakeS3World world;
    world.knows_delete_many = known;
    std::vector<store::ObjectKey> keys;
    for (int i = 0; i < 30; ++i) {
      keys.push_back({"k" + std::to_string(i)});
      world.put(keys.back().text, "x");
    }
    world.put("stays", "x");
    for (int round = 0; round < 2; ++round) {
      world.seen.clear();
      Waited<std::vector<store::RemoveFailure>> waited;
      world.store().remove_many(world.loop, keys, world.loop.now() + seconds(5), waited.done());
      world.loop.run_to_idle();
      ASSERT_EQ(waited.completions, 1);
      ASSERT_TRUE(*waited.result) << waited.result->error().to_string();
      EXPECT_TRUE((*waited.result)->empty());
      EXPECT_EQ(world.objects.size(), 1U);
      EXPECT_EQ(world.seen.size(), known ? 1U : 30U + (round == 0 ? 1 : 0));
    }
    EXPECT_LE(world.live_max, 8U);
  }
}

TEST(RemoveMany, NamesWhatCouldNotBeDeleted) {
  FakeS3World world;
  FakeTreatment treatment;
  treatment.kind = Kind::kCanned;
  treatment.status = 200;
  treatment.body =
      "<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
      "<Error><Key>b</Key><Code>NoSuchKey</Code></Error></DeleteResult>";
  world.treat = script_but_probes({treatment});
  Waited<std::vector<store::RemoveFailure>> waited;
  world.store().remove_many(world.loop, {{"a"}, {"b"}, {"c"}}, world.loop.now() + seconds(5),
                            waited.done());
  world.loop.run_to_idle();
  ASSERT_TRUE(*waited.result);
  ASSERT_EQ((*waited.result)->size(), 1U);
  EXPECT_EQ((**waited.result)[0].key.text, "a");
  EXPECT_EQ((**waited.result)[0].error.code, ErrorCode::kPermissionDenied);
  EXPECT_NE(world.seen[0].header("content-md5"), "");
}

TEST(RemoveMany, CancelOfSingles) {
  for (int us = 0; us < 9000; us += 333) {
    FakeS3World world;
    world.knows_delete_many = false;
    std::vector<store::ObjectKey> keys;
    for (int i = 0; i < 30; ++i) keys.push_back({"k" + std::to_string(i)});
    Waited<std::vector<store::RemoveFailure>> waited;
    const auto handle =
        world.store().remove_many(world.loop, keys, world.loop.now() + seconds(5), waited.done());
    world.loop.run_for(std::chrono::microseconds(us));
    handle->cancel();
    world.loop.run_for(milliseconds(1));
    ASSERT_EQ(waited.completions, 1) << us;
    EXPECT_EQ(world.live, 0U);
  }
}

std::vector<std::string> list_all(FakeS3World& world, store::ListRequest request) {
  std::vector<std::string> out;
  for (;;) {
    Waited<store::ListPage> waited;
    request.deadline = world.loop.now() + seconds(5);
    world.store().list(world.loop, request, waited.done());
    world.loop.run_to_idle();
    EXPECT_EQ(waited.completions, 1);
    if (!waited.result || !*waited.result) return {"failed"};
    for (const auto& entry : (*waited.result)->entries) out.push_back(entry.key.text);
    if ((*waited.result)->next_start_after.empty()) return out;
    request.start_after = (*waited.result)->next_start_after;
  }
}

TEST(List, PagesAndStripsThePrefixOfTheStore) {
  S3Options options = FakeS3World::plain_options(1);
  options.prefix = "team/kv";
  FakeS3World world(options);
  std::vector<std::string> names;
  for (int i = 100; i < 150; ++i) {
    names.push_back("a/" + std::to_string(i));
    world.put("team/kv/" + names.back(), "x");
  }
  world.put("team/kv2/a/1", "x");
  world.put("team/other", "x");
  for (const std::uint32_t max : {1U, 7U, 50U, 1000U}) {
    EXPECT_EQ(list_all(world, {.entries_max = max}), names);
    EXPECT_EQ(list_all(world, {.prefix = "a/10", .entries_max = max}).size(), 10U);
    EXPECT_EQ(list_all(world, {.start_after = "a/147", .entries_max = max}),
              (Methods{"a/148", "a/149"}));
  }
}

TEST(List, AListingThatDoesNotAdvanceIsAnError) {
  FakeS3World world;
  world.treat = [](const FakeS3World::Seen&, std::size_t) {
    FakeTreatment out = canned(200, "");
    out.body =
        "<ListBucketResult><IsTruncated>true</IsTruncated>"
        "<NextContinuationToken>x</NextContinuationToken></ListBucketResult>";
    return out;
  };
  Waited<store::ListPage> waited;
  world.store().list(world.loop, {.deadline = world.loop.now() + seconds(50)}, waited.done());
  world.loop.run_to_idle();
  ASSERT_FALSE(*waited.result);
  EXPECT_EQ(waited.result->error().code, ErrorCode::kUnavailable);
  EXPECT_LE(world.seen.size(), 1010U);
}

FakeTreatment listing(const std::vector<std::string>& keys, bool truncated) {
  s3::ListResult result;
  result.truncated = truncated;
  for (const std::string& key : keys) result.objects.push_back({.key = key, .etag = "\"e\""});
  FakeTreatment out = canned(200, "");
  out.body = s3::write_list_result(result, s3::KeyEncoding::kUrl);
  return out;
}

TEST(List, FolderOrderIsSortedWithinAPageAndRefusedAcrossPages) {
  struct Row {
    std::vector<std::string> keys;
    bool truncated;
    std::string start_after;
    bool good;
  };
  for (const Row& row : {Row{{"a/b", "a-b"}, false, "", true}, Row{{"a/b", "a-b"}, true, "", false},
                         Row{{"a-b", "a/b"}, true, "", true}, Row{{"a-b"}, false, "a/b", false},
                         Row{{"a/b"}, false, "a-b", true}}) {
    FakeS3World world;
    world.treat = [&](const FakeS3World::Seen&, std::size_t) {
      return listing(row.keys, row.truncated);
    };
    Waited<store::ListPage> waited;
    world.store().list(world.loop,
                       {.start_after = row.start_after, .deadline = world.loop.now() + seconds(5)},
                       waited.done());
    world.loop.run_to_idle();
    ASSERT_EQ(waited.result->has_value(), row.good) << row.keys[0] << row.truncated;
    if (!row.good) {
      EXPECT_EQ(waited.result->error().code, ErrorCode::kUnsupported);
    } else {
      EXPECT_TRUE(std::ranges::is_sorted((*waited.result)->entries, {}, &store::ObjectInfo::key));
    }
  }
}

TEST(List, GarbageIsAnError) {
  FakeS3World world;
  world.treat = [](const FakeS3World::Seen&, std::size_t) {
    FakeTreatment out = canned(200, "");
    out.body = "<html>hello</html>";
    return out;
  };
  Waited<store::ListPage> waited;
  world.store().list(world.loop, {.deadline = world.loop.now() + seconds(5)}, waited.done());
  world.loop.run_to_idle();
  ASSERT_FALSE(*waited.result);
  EXPECT_EQ(waited.result->error().action, "LIST");
}

}  // namespace
}  // namespace objectcache::store_s3
