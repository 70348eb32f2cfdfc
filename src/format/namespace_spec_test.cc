#include "objectcache/namespace_spec.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "format/example_namespace.h"
#include "format/namespace_fields.h"

namespace objectcache {
namespace {

using format::example_namespace;

// docs/formats/namespace.md, "Test vector".
constexpr std::string_view kCanonical =
    R"({"adapter_id":"none","adapter_revision":"none","attention_backend":"flash",)"
    R"("bytes_per_token":[4,8],"chunk_tokens":4,"cipher":"none","codec":"none",)"
    R"("element_order":"[token,2,kv_head,head_dim]","engine_block_tokens":1,"format_version":1,)"
    R"("hash_algorithm":"sha256-chain","hash_seed":"none","instruction_set":"any",)"
    R"("kv_dtype":"bfloat16","kv_quantization":"none","kv_scales":"none","layers":2,)"
    R"("model_architecture":"LlamaForCausalLM","model_fingerprint":"sha256:00",)"
    R"("object_layout":"chunk","position_encoding":"rope theta=10000","unit_tokens":2})";
constexpr std::string_view kDigest =
    "fc377896e023b28088a52e2486e3bed2c30b62687b4057c4ae7840d38edd71d5";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kCanonical);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_refused(std::string_view json, std::string_view field,
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  const auto spec = parse_namespace(json);
  ASSERT_FALSE(spec) << json;
  EXPECT_EQ(spec.error().key, field) << spec.error().to_string();
  EXPECT_EQ(spec.error().code, code) << spec.error().to_string();
}

NamespaceDigest digest_of(const NamespaceSpec& spec) {
  const auto digest = namespace_digest(spec);
  EXPECT_TRUE(digest) << digest.error().to_string();
  return digest.value_or(NamespaceDigest{});
}

TEST(Namespace, GoldenCanonicalFormAndDigest) {
  EXPECT_EQ(canonical_json(example_namespace()), kCanonical);
  ASSERT_TRUE(namespace_digest(example_namespace()));
  EXPECT_EQ(namespace_digest(example_namespace())->hex(), kDigest);
}

TEST(Namespace, ReadsBackWhatItWrites) {
  const auto spec = parse_namespace(kCanonical);
  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(*spec, example_namespace());
}

TEST(Namespace, OrderAndSpaceOfTheFileDoNotMatter) {
  std::string text = replaced(",\"unit_tokens\":2}", "}");
  text.insert(1, " \"unit_tokens\" :\n 2 , ");
  const auto spec = parse_namespace(text);
  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(canonical_json(*spec), kCanonical);
}

TEST(Namespace, EveryFieldIsRequiredByName) {
  std::size_t fields = 0;
  for (std::size_t at = 0; (at = kCanonical.find("\":", at)) != std::string_view::npos; at += 2) {
    const auto start = kCanonical.rfind('"', at - 1) + 1;
    const std::string name(kCanonical.substr(start, at - start));
    // A renamed field is a missing one and an unknown one; the missing one is named.
    expect_refused(replaced("\"" + name + "\":", "\"x" + name + "\":"), name);
    ++fields;
  }
  EXPECT_EQ(fields, format::kTextFields.size() + format::kNumberFields.size() + 2);
}

TEST(Namespace, UnknownAndRepeatedFieldsAreRefusedByName) {
  expect_refused(replaced("\"unit_tokens\":2", "\"unit_tokens\":2,\"weights\":1"), "weights");
  expect_refused(replaced("\"unit_tokens\":2", "\"unit_tokens\":2,\"layers\":2"), "layers");
}

TEST(Namespace, WrongTypesAreRefused) {
  expect_refused(replaced("\"layers\":2", "\"layers\":\"2\""), "layers");
  expect_refused(replaced("\"layers\":2", "\"layers\":2.0"), "layers");
  expect_refused(replaced("\"layers\":2", "\"layers\":-2"), "layers");
  expect_refused(replaced("\"layers\":2", "\"layers\":4294967298"), "layers");
  expect_refused(replaced("\"layers\":2", "\"layers\":99999999999999999999999"), "layers");
  expect_refused(replaced("\"codec\":\"none\"", "\"codec\":null"), "codec");
  expect_refused(replaced("[4,8]", "[4,\"8\"]"), "bytes_per_token");
  expect_refused(replaced("[4,8]", "[]"), "bytes_per_token");
  expect_refused(replaced("[4,8]", "{}"), "bytes_per_token");
  expect_refused(replaced("\"chunk\"", "\"slab\""), "object_layout");
  expect_refused("[]", "");
  expect_refused("", "");
  expect_refused("{", "");
  expect_refused(std::string(kCanonical) + "x", "");
  expect_refused(std::string(70'000, '['), "");
  expect_refused(std::string(60'000, '['), "");
}

TEST(Namespace, AnotherVersionIsIncompatible) {
  expect_refused(replaced("\"format_version\":1", "\"format_version\":2,\"new_field\":1"),
                 "format_version", ErrorCode::kIncompatible);
}

TEST(Namespace, EqualLayersCollapse) {
  NamespaceSpec one = example_namespace();
  one.bytes_per_token = {8};
  NamespaceSpec list = example_namespace();
  list.bytes_per_token = {8, 8};
  EXPECT_EQ(digest_of(one), digest_of(list));
  EXPECT_NE(canonical_json(one)->find("\"bytes_per_token\":8,"), std::string::npos);
  EXPECT_EQ(list.slice_bytes(1), 32U);
  EXPECT_EQ(one.slice_bytes(1), 32U);
}

struct Change {
  const char* field;
  std::function<void(NamespaceSpec&)> apply;
};

TEST(Namespace, LimitsAreEnforcedAndNamed) {
  const Change changes[] = {
      {"model_architecture", [](auto& s) { s.model_architecture = ""; }},
      {"model_fingerprint", [](auto& s) { s.model_fingerprint = "none"; }},
      {"kv_dtype", [](auto& s) { s.kv_dtype = std::string(257, 'x'); }},
      {"adapter_id", [](auto& s) { s.adapter_id = "a\"b"; }},
      {"adapter_id", [](auto& s) { s.adapter_id = "a\\b"; }},
      {"adapter_id", [](auto& s) { s.adapter_id = "a\nb"; }},
      {"adapter_id", [](auto& s) { s.adapter_id = "\xc3\xa4"; }},
      {"layers", [](auto& s) { s.layers = 0; }},
      {"layers", [](auto& s) { s.layers = 1025; }},
      {"bytes_per_token", [](auto& s) { s.bytes_per_token = {}; }},
      {"bytes_per_token", [](auto& s) { s.bytes_per_token = {1, 2, 3}; }},
      {"bytes_per_token", [](auto& s) { s.bytes_per_token = {4, 0}; }},
      {"bytes_per_token", [](auto& s) { s.bytes_per_token = {(1U << 24) + 1}; }},
      {"engine_block_tokens", [](auto& s) { s.engine_block_tokens = 0; }},
      {"unit_tokens", [](auto& s) { s.unit_tokens = 0; }},
      {"unit_tokens", [](auto& s) { s.engine_block_tokens = 4; }},
      {"chunk_tokens", [](auto& s) { s.chunk_tokens = 5; }},
      {"chunk_tokens", [](auto& s) { s.chunk_tokens = 257 * 2; }},
      {"chunk_tokens", [](auto& s) { s.chunk_tokens = (1U << 20) + 2; }},
      {"hash_algorithm", [](auto& s) { s.hash_algorithm = "md5"; }},
      {"hash_algorithm", [](auto& s) { s.hash_algorithm = "engine:xxhash"; }},
      {"hash_algorithm", [](auto& s) { s.hash_algorithm = "engine:xxhash_cbor"; }},
      {"hash_algorithm", [](auto& s) { s.hash_algorithm = "engine:builtin"; }},
      {"hash_algorithm", [](auto& s) { s.hash_algorithm = "engine:"; }},
      {"hash_seed", [](auto& s) { s.hash_seed = "0"; }},
      {"codec", [](auto& s) { s.codec = "zstd"; }},
      {"cipher", [](auto& s) { s.cipher = "aes"; }},
      {"object_layout", [](auto& s) { s.object_layout = static_cast<ObjectLayout>(7); }},
      // One unit of 2^20 tokens x 4,096 bytes is 4 GiB.
      {"unit_tokens",
       [](auto& s) {
         s.unit_tokens = s.chunk_tokens = 1U << 20;
         s.bytes_per_token = {4096};
       }},
      // 1,024 layers x 1 MiB x 6 units: 6 GiB in one object.
      {"chunk_tokens",
       [](auto& s) {
         s.layers = 1024;
         s.chunk_tokens = 12;
         s.bytes_per_token = {1U << 19};
       }},
  };
  for (const Change& change : changes) {
    NamespaceSpec spec = example_namespace();
    change.apply(spec);
    const auto checked = validate(spec);
    ASSERT_FALSE(checked) << change.field;
    EXPECT_EQ(checked.error().key, change.field) << checked.error().to_string();
    EXPECT_FALSE(canonical_json(spec));
    EXPECT_FALSE(namespace_digest(spec));
  }
}

TEST(Namespace, LayerObjectsMayTogetherExceedOneObject) {
  NamespaceSpec spec = example_namespace();
  spec.layers = 1024;
  spec.chunk_tokens = 12;
  spec.bytes_per_token = {1U << 19};
  spec.object_layout = ObjectLayout::kLayer;
  EXPECT_TRUE(validate(spec));
}

TEST(Namespace, EngineHashes) {
  NamespaceSpec spec = example_namespace();
  spec.hash_algorithm = "engine:sha256_cbor";
  spec.hash_seed = "0";
  EXPECT_TRUE(validate(spec));
  EXPECT_EQ(spec.key_source(), KeySource::kEngineHash);
  spec.hash_seed = "random";
  EXPECT_FALSE(validate(spec));
  EXPECT_EQ(example_namespace().key_source(), KeySource::kOwnChain);
}

TEST(Namespace, EveryFieldIsPartOfTheDigest) {
  const auto base = digest_of(example_namespace());
  for (const auto& field : format::kTextFields) {
    NamespaceSpec spec = example_namespace();
    spec.*field.member += "2";
    if (!validate(spec)) continue;  // codec, cipher, hash: only one value is known.
    EXPECT_NE(digest_of(spec), base) << field.name;
  }
  const Change changes[] = {
      {"layers", [](auto& s) { s.layers = 3, s.bytes_per_token = {4, 8, 8}; }},
      {"bytes_per_token", [](auto& s) { s.bytes_per_token = {8, 4}; }},
      {"block", [](auto& s) { s.engine_block_tokens = 2; }},
      {"unit", [](auto& s) { s.unit_tokens = 4; }},
      {"chunk", [](auto& s) { s.chunk_tokens = 6; }},
      {"layout", [](auto& s) { s.object_layout = ObjectLayout::kLayer; }},
  };
  for (const Change& change : changes) {
    NamespaceSpec spec = example_namespace();
    change.apply(spec);
    EXPECT_NE(digest_of(spec), base) << change.field;
  }
}

TEST(Namespace, DefaultUnit) {
  EXPECT_EQ(default_unit_tokens(1), 64U);
  EXPECT_EQ(default_unit_tokens(16), 64U);
  EXPECT_EQ(default_unit_tokens(48), 96U);
  EXPECT_EQ(default_unit_tokens(64), 64U);
  EXPECT_EQ(default_unit_tokens(100), 100U);
  EXPECT_EQ(default_unit_tokens(0), 0U);
  EXPECT_EQ(default_unit_tokens(UINT32_MAX), 0U);
}

TEST(Namespace, DefaultChunk) {
  EXPECT_EQ(default_chunk_tokens(64, 4096), 256U);  // Llama 3.1 8B: 1 MiB at 256 tokens.
  EXPECT_EQ(default_chunk_tokens(64, 16384), 64U);  // One unit has 1 MiB.
  EXPECT_EQ(default_chunk_tokens(64, 8192), 128U);
  EXPECT_EQ(default_chunk_tokens(64, 1), 256U);   // The cap.
  EXPECT_EQ(default_chunk_tokens(96, 1), 192U);   // The cap, rounded down.
  EXPECT_EQ(default_chunk_tokens(300, 1), 300U);  // At least one unit.
  EXPECT_EQ(default_chunk_tokens(0, 1), 0U);
  EXPECT_EQ(default_chunk_tokens(64, 0), 0U);
  EXPECT_EQ(default_chunk_tokens(64, UINT64_MAX), 0U);
}

}  // namespace
}  // namespace objectcache
