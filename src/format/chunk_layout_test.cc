#include "format/chunk_layout.h"

#include <gtest/gtest.h>

#include "format/example_namespace.h"

namespace objectcache::format {
namespace {

ChunkLayout layout_of(const NamespaceSpec& spec) {
  auto layout = ChunkLayout::create(spec);
  EXPECT_TRUE(layout) << layout.error().to_string();
  return *std::move(layout);
}

TEST(ChunkLayout, HeaderSizeFollowsFromTheNamespace) {
  // docs/formats/chunk_object.md: roundup(160 + 32 x units + 8 x L x units, 4096).
  EXPECT_EQ(padded_header_bytes(2, 2), 4096U);
  EXPECT_EQ(padded_header_bytes(32, 4), 4096U);
  EXPECT_EQ(padded_header_bytes(80, 6), 8192U);   // 160 + 192 + 3,840 = 4,192.
  EXPECT_EQ(padded_header_bytes(488, 1), 4096U);  // 160 + 32 + 3,904 = 4,096 exactly.
  EXPECT_EQ(padded_header_bytes(489, 1), 8192U);
  EXPECT_EQ(padded_header_bytes(1024, 256), 2109440U);
}

TEST(ChunkLayout, UnequalSlices) {
  const ChunkLayout layout = layout_of(example_namespace());
  EXPECT_EQ(layout.layers(), 2U);
  EXPECT_EQ(layout.units(), 2U);
  EXPECT_EQ(layout.chunk_tokens(), 4U);
  EXPECT_EQ(layout.unit_bytes(0), 8U);
  EXPECT_EQ(layout.unit_bytes(1), 16U);
  EXPECT_EQ(layout.slice_offset(0), 4096U);
  EXPECT_EQ(layout.slice_offset(1), 4112U);
  EXPECT_EQ(layout.payload_bytes(), 48U);
  EXPECT_EQ(layout.object_bytes(0), 4144U);
  EXPECT_EQ(layout.object_count(), 1U);
}

TEST(ChunkLayout, PublishedShape) {
  const ChunkLayout layout = layout_of(llama_namespace());
  EXPECT_EQ(layout.slice_bytes(31), 1U << 20);
  EXPECT_EQ(layout.object_bytes(0), 4096U + (32U << 20));
  EXPECT_EQ(layout.slice_offset(31), 4096U + (31U << 20));
}

TEST(ChunkLayout, LayerZeroBringsTheHeader) {
  const ChunkLayout layout = layout_of(example_namespace());
  EXPECT_EQ(layout.locate({.first_layer = 0, .layer_count = 1, .first_unit = 0, .unit_count = 2}),
            (ByteRange{.object_layer = 0, .offset = 0, .length = 4112}));
  EXPECT_EQ(layout.header_range(), (ByteRange{.object_layer = 0, .offset = 0, .length = 4096}));
}

TEST(ChunkLayout, RangesOfLayersAreContiguous) {
  const ChunkLayout layout = layout_of(example_namespace());
  EXPECT_EQ(layout.locate({.first_layer = 1, .layer_count = 1, .first_unit = 0, .unit_count = 2}),
            (ByteRange{.object_layer = 0, .offset = 4112, .length = 32}));
  EXPECT_EQ(layout.locate({.first_layer = 0, .layer_count = 2, .first_unit = 0, .unit_count = 2}),
            (ByteRange{.object_layer = 0, .offset = 0, .length = 4144}));
}

TEST(ChunkLayout, LeadingUnitsAlone) {
  const ChunkLayout layout = layout_of(example_namespace());
  EXPECT_EQ(layout.locate({.first_layer = 0, .layer_count = 1, .first_unit = 0, .unit_count = 1}),
            (ByteRange{.object_layer = 0, .offset = 0, .length = 4104}));
  EXPECT_EQ(layout.locate({.first_layer = 1, .layer_count = 1, .first_unit = 0, .unit_count = 1}),
            (ByteRange{.object_layer = 0, .offset = 4112, .length = 16}));
  EXPECT_EQ(layout.locate({.first_layer = 1, .layer_count = 1, .first_unit = 1, .unit_count = 1}),
            (ByteRange{.object_layer = 0, .offset = 4128, .length = 16}));
  // Two layers: the second unit of layer 0 is surplus in the middle.
  EXPECT_EQ(layout.locate({.first_layer = 0, .layer_count = 2, .first_unit = 0, .unit_count = 1}),
            (ByteRange{.object_layer = 0, .offset = 0, .length = 4128}));
  // Later units of layer 0 come without the header.
  EXPECT_EQ(layout.locate({.first_layer = 0, .layer_count = 1, .first_unit = 1, .unit_count = 1}),
            (ByteRange{.object_layer = 0, .offset = 4104, .length = 8}));
}

TEST(ChunkLayout, LayerObjects) {
  NamespaceSpec spec = example_namespace();
  spec.object_layout = ObjectLayout::kLayer;
  const ChunkLayout layout = layout_of(spec);
  EXPECT_EQ(layout.object_count(), 2U);
  EXPECT_EQ(layout.object_bytes(0), 4112U);
  EXPECT_EQ(layout.object_bytes(1), 32U);
  EXPECT_EQ(layout.slice_offset(0), 4096U);
  EXPECT_EQ(layout.slice_offset(1), 0U);
  EXPECT_EQ(layout.layers_per_range_max(0), 1U);
  EXPECT_EQ(layout.locate({.first_layer = 0, .layer_count = 1, .first_unit = 0, .unit_count = 2}),
            (ByteRange{.object_layer = 0, .offset = 0, .length = 4112}));
  EXPECT_EQ(layout.locate({.first_layer = 1, .layer_count = 1, .first_unit = 1, .unit_count = 1}),
            (ByteRange{.object_layer = 1, .offset = 16, .length = 16}));
  EXPECT_FALSE(
      layout.locate({.first_layer = 0, .layer_count = 2, .first_unit = 0, .unit_count = 2}));
}

TEST(ChunkLayout, SpansBeyondTheChunkAreRefused) {
  const ChunkLayout layout = layout_of(example_namespace());
  const SliceSpan bad[] = {
      {.first_layer = 0, .layer_count = 0, .first_unit = 0, .unit_count = 1},
      {.first_layer = 0, .layer_count = 1, .first_unit = 0, .unit_count = 0},
      {.first_layer = 2, .layer_count = 1, .first_unit = 0, .unit_count = 1},
      {.first_layer = 1, .layer_count = 2, .first_unit = 0, .unit_count = 1},
      {.first_layer = 0, .layer_count = 1, .first_unit = 2, .unit_count = 1},
      {.first_layer = 0, .layer_count = 1, .first_unit = 1, .unit_count = 2},
      {.first_layer = 1, .layer_count = UINT32_MAX, .first_unit = 0, .unit_count = 1},
      {.first_layer = 0, .layer_count = 1, .first_unit = 1, .unit_count = UINT32_MAX},
      {.first_layer = UINT32_MAX, .layer_count = 1, .first_unit = UINT32_MAX, .unit_count = 1},
  };
  for (const SliceSpan& span : bad) EXPECT_FALSE(layout.locate(span));
}

TEST(ChunkLayout, NeedsAValidNamespace) {
  NamespaceSpec spec = example_namespace();
  spec.layers = 0;
  EXPECT_FALSE(ChunkLayout::create(spec));
}

}  // namespace
}  // namespace objectcache::format
