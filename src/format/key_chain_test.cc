#include "objectcache/key_chain.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>

#include "format/example_namespace.h"

namespace objectcache {
namespace {

using format::example_namespace;

// docs/formats/keys.md, "Test vectors".
constexpr std::string_view kNamespace =
    "fc377896e023b28088a52e2486e3bed2c30b62687b4057c4ae7840d38edd71d5";
constexpr std::array<TokenId, 7> kTokens = {1, 2, 3, 128000, 0xFFFFFFFF, 0, 99};

NamespaceDigest name() { return *NamespaceDigest::from_hex(kNamespace); }

ConstSegment as_segment(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(KeyChain, GoldenEmptySalt) {
  KeyChain chain(name(), "");
  EXPECT_EQ(chain.head().hex(), "41589a4b6e84d53b269dcc700c9214deeca21bc55cd512019fd49911a5ac4fe2");
  const auto keys = unit_keys(example_namespace(), "", kTokens);
  ASSERT_TRUE(keys) << keys.error().to_string();
  ASSERT_EQ(keys->size(), 3U);  // The seventh token is no full unit.
  EXPECT_EQ((*keys)[0].hex(), "c651cedde8debdfe58a11fed484ef2a521aa640e85f00c342cb1dab0cc7da490");
  EXPECT_EQ((*keys)[1].hex(), "16e21945845ac65d8f9ce38666e398efafbcf30e03177e9b46dc106e56b7090b");
  EXPECT_EQ((*keys)[2].hex(), "13c565eb17ac249c828871b20f7687a3a75081156e9f394a046e6000329f1038");
}

TEST(KeyChain, GoldenSalt) {
  EXPECT_EQ(KeyChain(name(), "tenant-salt").head().hex(),
            "748a25081c36de952e27724c2ad71b5f573402e53e22f4ed16cc4142eee17eef");
  const auto keys = unit_keys(example_namespace(), "tenant-salt", kTokens);
  ASSERT_TRUE(keys);
  EXPECT_EQ((*keys)[0].hex(), "84bd93dc2e6a20cf61a1dab576031f10536749bf6abce541ebed010b4de9bdd8");
  EXPECT_EQ((*keys)[1].hex(), "be8a5fc783fd301f88e8a7341a3a323df535d9f0bfbc5380d2df5a1d5a70b4a2");
  EXPECT_EQ((*keys)[2].hex(), "e0533d7e58ada31bcf1ede4371bb576f7e5ea6904c67d5fe77da2596591a7897");
}

TEST(KeyChain, GoldenExtra) {
  const UnitExtra extra{.unit = 0, .bytes = as_segment("image:0")};
  const auto keys = unit_keys(example_namespace(), "", kTokens, std::span(&extra, 1));
  ASSERT_TRUE(keys);
  EXPECT_EQ((*keys)[0].hex(), "3f0e8cce7fc0b4362e7e09235506afee513f1ec4600ee9103b4c20627fe1d2bc");
}

TEST(KeyChain, AppendGivesWhatUnitKeysGives) {
  const auto keys = unit_keys(example_namespace(), "s", kTokens);
  ASSERT_TRUE(keys);
  KeyChain chain(name(), "s");
  EXPECT_EQ(chain.append(std::span(kTokens).first(2)), (*keys)[0]);
  KeyChain resumed((*keys)[0]);
  EXPECT_EQ(resumed.append(std::span(kTokens).subspan(2, 2)), (*keys)[1]);
}

TEST(KeyChain, AKeyNamesEverythingBeforeIt) {
  const auto keys = unit_keys(example_namespace(), "", kTokens);
  auto changed_tokens = kTokens;
  changed_tokens[0] = 7;
  const auto changed = unit_keys(example_namespace(), "", changed_tokens);
  ASSERT_TRUE(keys && changed);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NE((*keys)[i], (*changed)[i]);
  // A change behind a unit leaves the unit's key as it is.
  changed_tokens = kTokens;
  changed_tokens[4] = 7;
  const auto later = unit_keys(example_namespace(), "", changed_tokens);
  ASSERT_TRUE(later);
  EXPECT_EQ((*keys)[1], (*later)[1]);
  EXPECT_NE((*keys)[2], (*later)[2]);
}

TEST(KeyChain, ExtrasReachTheirUnitOnlyAndThoseAfterIt) {
  const auto plain = unit_keys(example_namespace(), "", kTokens);
  const UnitExtra extras[] = {{.unit = 1, .bytes = as_segment("a")},
                              {.unit = 9, .bytes = as_segment("beyond the prompt")}};
  const auto keys = unit_keys(example_namespace(), "", kTokens, extras);
  ASSERT_TRUE(plain && keys);
  EXPECT_EQ((*plain)[0], (*keys)[0]);
  EXPECT_NE((*plain)[1], (*keys)[1]);
  EXPECT_NE((*plain)[2], (*keys)[2]);
}

TEST(KeyChain, BadExtrasAreRefused) {
  const UnitExtra twice[] = {{.unit = 1, .bytes = {}}, {.unit = 1, .bytes = {}}};
  EXPECT_FALSE(unit_keys(example_namespace(), "", kTokens, twice));
  const std::vector<std::byte> big(kExtraBytesMax + 1);
  const UnitExtra large{.unit = 0, .bytes = big};
  EXPECT_FALSE(unit_keys(example_namespace(), "", kTokens, std::span(&large, 1)));
}

TEST(KeyChain, SaltsAndNamespacesNeverMeet) {
  const auto a = unit_keys(example_namespace(), "a", kTokens);
  const auto b = unit_keys(example_namespace(), "b", kTokens);
  NamespaceSpec other = example_namespace();
  other.model_fingerprint = "sha256:01";
  const auto c = unit_keys(other, "a", kTokens);
  ASSERT_TRUE(a && b && c);
  EXPECT_NE((*a)[0], (*b)[0]);
  EXPECT_NE((*a)[0], (*c)[0]);
}

NamespaceSpec engine_namespace() {
  NamespaceSpec spec = example_namespace();
  spec.hash_algorithm = "engine:sha256";
  spec.hash_seed = "0";
  return spec;
}

std::array<std::byte, 32> counting_hash() {
  std::array<std::byte, 32> hash;
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] = static_cast<std::byte>(i);
  return hash;
}

TEST(EngineKeys, Golden) {
  const auto hash = counting_hash();
  const auto key = engine_unit_key(name(), "", hash);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->hex(), "5695b02ff76ec9def51e5da2f06ab08f2dfe1dbfd14885eed97708fabf5e5de7");
}

TEST(EngineKeys, TheLastBlockOfAUnitCounts) {
  const auto hash = counting_hash();
  auto other = hash;
  other[0] = std::byte{0xff};
  const EngineHash blocks[] = {other, hash, other, hash, other};  // Two blocks a unit.
  const auto keys = engine_unit_keys(engine_namespace(), "", blocks);
  ASSERT_TRUE(keys) << keys.error().to_string();
  ASSERT_EQ(keys->size(), 2U);
  const auto expected = engine_unit_key(*namespace_digest(engine_namespace()), "", hash);
  ASSERT_TRUE(expected);
  EXPECT_EQ((*keys)[0], *expected);
  EXPECT_EQ((*keys)[1], *expected);
}

TEST(EngineKeys, ShortHashesAreRefused) {
  const std::array<std::byte, 65> bytes{};
  const auto of_size = [&](std::size_t n) {
    return engine_unit_key(name(), "", EngineHash(bytes).first(n)).has_value();
  };
  EXPECT_FALSE(of_size(0));
  EXPECT_FALSE(of_size(8));
  EXPECT_FALSE(of_size(31));
  EXPECT_TRUE(of_size(32));
  EXPECT_TRUE(of_size(64));
  EXPECT_FALSE(of_size(65));
}

TEST(EngineKeys, TheNamespaceDecidesWhichKeysAreUsed) {
  const auto hash = counting_hash();
  const EngineHash blocks[] = {hash, hash};
  EXPECT_FALSE(engine_unit_keys(example_namespace(), "", blocks));
  EXPECT_FALSE(unit_keys(engine_namespace(), "", kTokens));
}

TEST(ChunkKeys, AreTheKeysOfTheLastUnits) {
  std::vector<UnitKey> units(7);
  for (std::size_t i = 0; i < units.size(); ++i) units[i].bytes[0] = static_cast<std::byte>(i);
  const auto keys = chunk_keys(units, 3);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0], chunk_key_of(units[2]));
  EXPECT_EQ(keys[1], chunk_key_of(units[5]));
  EXPECT_TRUE(chunk_keys(units, 8).empty());
  EXPECT_TRUE(chunk_keys(units, 0).empty());
  EXPECT_EQ(chunk_keys(units, 1).size(), 7U);
}

}  // namespace
}  // namespace objectcache
