#include "format/names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace objectcache::format {
namespace {

// docs/formats/names.md, "Test vectors".
constexpr std::string_view kNamespace =
    "fc377896e023b28088a52e2486e3bed2c30b62687b4057c4ae7840d38edd71d5";
constexpr std::string_view kChunk =
    "16e21945845ac65d8f9ce38666e398efafbcf30e03177e9b46dc106e56b7090b";
constexpr std::string_view kName =
    "team/kv/default/fc377896e023b28088a52e2486e3bed2/16/"
    "16e21945845ac65d8f9ce38666e398efafbcf30e03177e9b46dc106e56b7090b/tp1of2-pp0of1";
constexpr Shard kShard{.tp_rank = 1, .tp_size = 2, .pp_rank = 0, .pp_size = 1};

ObjectNames names(std::string_view prefix = "team/kv", std::string_view tenant = kDefaultTenant) {
  return *ObjectNames::create(prefix, tenant, *NamespaceDigest::from_hex(kNamespace));
}
ChunkKey chunk() { return *ChunkKey::from_hex(kChunk); }

TEST(Names, Golden) {
  EXPECT_EQ(names().object(chunk(), kShard), kName);
  EXPECT_EQ(names().object(chunk(), kShard, 7), std::string(kName) + ".l0007");
  EXPECT_EQ(names().namespace_json(),
            "team/kv/default/fc377896e023b28088a52e2486e3bed2/namespace.json");
  EXPECT_EQ(names("").namespace_prefix(), "default/fc377896e023b28088a52e2486e3bed2/");
  EXPECT_EQ(tenant_prefix("team/kv", "default"), "team/kv/default/");
  EXPECT_EQ(tenant_prefix("", "t"), "t/");
  EXPECT_TRUE(kName.starts_with(names().chunk_prefix(chunk())));
}

TEST(Names, ReadsBack) {
  for (const std::uint32_t layer : {0U, 1U, 1023U}) {
    for (const std::string_view prefix : {"", "team/kv"}) {
      const auto parsed =
          parse_object_name(prefix, names(prefix, "t-1").object(chunk(), kShard, layer));
      ASSERT_TRUE(parsed);
      EXPECT_EQ(parsed->tenant, "t-1");
      EXPECT_EQ(parsed->namespace_hex, kNamespace.substr(0, 32));
      EXPECT_EQ(parsed->chunk, chunk());
      EXPECT_EQ(parsed->shard, kShard);
      EXPECT_EQ(parsed->object_layer, layer);
    }
  }
}

TEST(Names, ForeignNamesAreNotTaken) {
  const std::string good(kName);
  EXPECT_TRUE(parse_object_name("team/kv", good));
  EXPECT_FALSE(parse_object_name("team", good));
  EXPECT_FALSE(parse_object_name("team/k", good));
  EXPECT_FALSE(parse_object_name("", good));
  EXPECT_FALSE(parse_object_name("team/kv", names().namespace_json()));
  EXPECT_FALSE(parse_object_name("team/kv", ""));
  EXPECT_FALSE(parse_object_name("team/kv", "team/kv"));
  EXPECT_FALSE(parse_object_name("team/kv", good + "/x"));
  for (const char* suffix : {".l", ".l7", ".l0000", ".l1024", ".l00007", ".l-001", ".tmp", "x"}) {
    EXPECT_FALSE(parse_object_name("team/kv", good + suffix)) << suffix;
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(parse_object_name("team/kv", good.substr(0, i))) << i;
  }
  auto fanout = good;
  fanout[fanout.find("/16/") + 1] = '2';
  EXPECT_FALSE(parse_object_name("team/kv", fanout));
  auto upper = good;
  upper[upper.find("fc37")] = 'F';
  EXPECT_FALSE(parse_object_name("team/kv", upper));
}

TEST(Names, ShardText) {
  EXPECT_EQ(shard_text({}), "tp0of1-pp0of1");
  EXPECT_EQ(parse_shard("tp0of1-pp0of1"), Shard{});
  EXPECT_EQ(parse_shard("tp7of8-pp3of4"),
            (Shard{.tp_rank = 7, .tp_size = 8, .pp_rank = 3, .pp_size = 4}));
  EXPECT_EQ(parse_shard("tp65534of65535-pp0of1")->tp_size, 65535);
  for (const char* bad : {"", "tp0of1", "tp0of1-pp0of0", "tp1of1-pp0of1", "tp00of1-pp0of1",
                          "tp0of01-pp0of1", "tp0of65536-pp0of1", "tp-1of1-pp0of1", "tp0of1-pp0of1 ",
                          "tp0of1_pp0of1", "TP0of1-pp0of1", "tp+0of1-pp0of1", "tpof1-pp0of1"}) {
    EXPECT_FALSE(parse_shard(bad)) << bad;
  }
}

TEST(Names, TenantRules) {
  for (const char* good : {"default", "a", "0", "team-1.x_y"}) EXPECT_FALSE(tenant_problem(good));
  EXPECT_FALSE(tenant_problem(std::string(64, 'a')));
  for (const char* bad : {"", ".", "..", "-a", "_a", "A", "a/b", "a b", "a\nb", "\xc3\xa4"}) {
    EXPECT_TRUE(tenant_problem(bad)) << bad;
    EXPECT_FALSE(ObjectNames::create("", bad, {}));
  }
  EXPECT_TRUE(tenant_problem(std::string(65, 'a')));
}

TEST(Names, PrefixRules) {
  for (const char* good : {"", "a", "a/b", "A.b-c_d/0", "..."}) EXPECT_FALSE(prefix_problem(good));
  for (const char* bad : {"/", "/a", "a/", "a//b", ".", "..", "a/../b", "a b", "a%2f"}) {
    EXPECT_TRUE(prefix_problem(bad)) << bad;
    EXPECT_FALSE(ObjectNames::create(bad, "t", {}));
  }
  EXPECT_TRUE(prefix_problem(std::string(513, 'a')));
}

TEST(Names, ShardAsText) {
  const Shard shard{.tp_rank = 3, .tp_size = 8, .pp_rank = 1, .pp_size = 2};
  EXPECT_EQ(shard.to_string(), "tp3of8-pp1of2");
  EXPECT_EQ(*Shard::parse("tp3of8-pp1of2"), shard);
  const auto bad = Shard::parse("tp8of8-pp0of1");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
}

TEST(Names, TheLongestNameFitsAStore) {
  const auto longest = *ObjectNames::create(std::string(512, 'p'), std::string(64, 't'), {});
  const Shard wide{.tp_rank = 65534, .tp_size = 65535, .pp_rank = 65534, .pp_size = 65535};
  EXPECT_LE(longest.object(chunk(), wide, 1023).size(), 900U);
}

}  // namespace
}  // namespace objectcache::format
