#include "cli/kv_file.h"

#include <gtest/gtest.h>

namespace objectcache::cli {
namespace {

NamespaceSpec spec_of(std::uint32_t layers) {
  NamespaceSpec spec;
  spec.layers = layers;
  spec.bytes_per_token = {2 * 3 * 4 * 2};
  spec.kv_dtype = "bfloat16";
  spec.element_order = "[token,2,3,4]";
  spec.chunk_tokens = 64;
  spec.unit_tokens = 64;
  return spec;
}

SafetensorsHead head_of(const NamespaceSpec& spec, std::uint64_t tokens) {
  return {.tensors = plan_kv_file(spec, tokens).tensors, .data_offset = 8};
}

TEST(KvFile, PlansTensorsInTheOrderOfTheirNames) {
  const KvFilePlan plan = plan_kv_file(spec_of(12), 64);
  ASSERT_EQ(plan.tensors.size(), 12U);
  EXPECT_EQ(plan.tensors[2].name, "layer.10");
  EXPECT_EQ(plan.order[2], 10U);
  EXPECT_EQ(plan.tensors[2].shape, (std::vector<std::uint64_t>{64, 2, 3, 4}));
  EXPECT_EQ(plan.tensors[2].dtype, "BF16");
  EXPECT_EQ(plan.data_bytes, 12U * 64 * 48);
}

TEST(KvFile, FallsBackToBytesWhereTheOrderStatesNoNumbers) {
  NamespaceSpec spec = spec_of(1);
  for (const char* order : {"private", "[token,2,kv_head,head_dim]", "[token,2,3,5]", "[token,]"}) {
    spec.element_order = order;
    const KvFilePlan plan = plan_kv_file(spec, 64);
    EXPECT_EQ(plan.tensors[0].dtype, "U8") << order;
    EXPECT_EQ(plan.tensors[0].shape, (std::vector<std::uint64_t>{64, 48})) << order;
  }
}

TEST(KvFile, FindsTheTensorOfEachLayer) {
  const NamespaceSpec spec = spec_of(12);
  const SafetensorsHead head = head_of(spec, 64);
  const auto layers = layers_of(head, spec, 64);
  ASSERT_TRUE(layers.has_value()) << layers.error().to_string();
  for (std::size_t l = 0; l < 12; ++l) {
    EXPECT_EQ(head.tensors[(*layers)[l]].name, "layer." + std::to_string(l));
  }
}

TEST(KvFile, RefusesWhatDoesNotFitTheNamespace) {
  const NamespaceSpec spec = spec_of(2);
  const SafetensorsHead good = head_of(spec, 64);
  const auto refused = [&](auto change, const NamespaceSpec& against, std::uint64_t tokens) {
    SafetensorsHead head = good;
    change(head);
    const auto layers = layers_of(head, against, tokens);
    return !layers.has_value() && layers.error().code == ErrorCode::kInvalidArgument;
  };
  const auto same = [](SafetensorsHead&) {};
  EXPECT_FALSE(refused(same, spec, 64));
  EXPECT_TRUE(refused(same, spec, 65)) << "token count";
  EXPECT_TRUE(refused(same, spec_of(3), 64)) << "layer count";
  EXPECT_TRUE(refused([](SafetensorsHead& h) { h.tensors[1].name = "layer.0"; }, spec, 64));
  EXPECT_TRUE(refused([](SafetensorsHead& h) { h.tensors[1].name = "layer"; }, spec, 64));
  EXPECT_TRUE(refused([](SafetensorsHead& h) { h.tensors[1].name = "layer.7"; }, spec, 64));
  EXPECT_TRUE(refused([](SafetensorsHead& h) { h.tensors[0].dtype = "F16"; }, spec, 64));
  EXPECT_TRUE(refused([](SafetensorsHead& h) { h.tensors[0].shape.clear(); }, spec, 64));
  NamespaceSpec other = spec;
  other.bytes_per_token = {40};
  EXPECT_TRUE(refused(same, other, 64)) << "bytes per token";
}

}  // namespace
}  // namespace objectcache::cli
