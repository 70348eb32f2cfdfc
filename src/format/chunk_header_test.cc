#include "format/chunk_header.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "digest/crc32c.h"
#include "digest/sha256.h"
#include "format/example_namespace.h"

namespace objectcache::format {
namespace {

// docs/formats/chunk_object.md, "Test vector": offsets 0 to 255; the rest of the header is zero.
constexpr std::string_view kGolden =
    "894f434b560d0a1a0100000000100000"   //   0 magic, version, header_bytes
    "02000000020000000200000000000000"   //  16 layers, units, unit_tokens, object_layout
    "fc377896e023b28088a52e2486e3bed2"   //  32 namespace digest
    "c30b62687b4057c4ae7840d38edd71d5"   //
    "16e21945845ac65d8f9ce38666e398ef"   //  64 chunk key
    "afbcf30e03177e9b46dc106e56b7090b"   //
    "00000000000000000000000000000000"   //  96 parent key
    "00000000000000000000000000000000"   //
    "01000200000001003010000000000000"   // 128 shard, object_bytes
    "7b68e5cf8b010000000000007c78bcbe"   // 144 created, reserved, CRC32C
    "c651cedde8debdfe58a11fed484ef2a5"   // 160 unit keys
    "21aa640e85f00c342cb1dab0cc7da490"   //
    "16e21945845ac65d8f9ce38666e398ef"   //
    "afbcf30e03177e9b46dc106e56b7090b"   //
    "080000009de4726b08000000cec8dd1b"   // 224 records of layer 0
    "100000001a343c27100000009a66fa59";  // 240 records of layer 1

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

std::vector<std::byte> golden_header() {
  auto bytes = from_hex(kGolden);
  bytes.resize(4096);
  return bytes;
}

/// The slices of the vector: bytes 0x10 to 0x1f, then 0x40 to 0x5f.
std::vector<std::byte> golden_slice(std::uint32_t layer) {
  std::vector<std::byte> out(layer == 0 ? 16 : 32);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::byte>((layer == 0 ? 0x10 : 0x40) + i);
  }
  return out;
}

ChunkLayout layout_of(const NamespaceSpec& spec) { return *ChunkLayout::create(spec); }
ChunkLayout golden_layout() { return layout_of(example_namespace()); }

ChunkHeader golden_value() {
  ChunkHeader header;
  header.name = *namespace_digest(example_namespace());
  header.shard = {.tp_rank = 1, .tp_size = 2, .pp_rank = 0, .pp_size = 1};
  header.unit_keys = {
      *UnitKey::from_hex("c651cedde8debdfe58a11fed484ef2a521aa640e85f00c342cb1dab0cc7da490"),
      *UnitKey::from_hex("16e21945845ac65d8f9ce38666e398efafbcf30e03177e9b46dc106e56b7090b")};
  header.key = chunk_key_of(header.unit_keys[1]);
  header.created_unix_ms = 1700000000123;
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    const auto slice = golden_slice(layer);
    const auto half = slice.size() / 2;
    for (std::size_t unit = 0; unit < 2; ++unit) {
      header.records.push_back(
          {.stored_bytes = static_cast<std::uint32_t>(half),
           .crc32c = digest::crc32c(ConstSegment(slice).subspan(unit * half, half))});
    }
  }
  return header;
}

ExpectedChunk expected_of(const ChunkHeader& header) {
  return {.name = header.name, .shard = header.shard, .key = header.key, .parent = header.parent};
}

/// Recomputes the CRC, as a writer of wrong but undamaged bytes would have.
void reseal(std::vector<std::byte>& bytes) {
  const std::uint32_t zero = 0;
  std::memcpy(bytes.data() + 156, &zero, 4);
  const std::uint32_t crc = digest::crc32c(bytes);
  std::memcpy(bytes.data() + 156, &crc, 4);
}

TEST(ChunkHeader, GoldenEncode) {
  std::vector<std::byte> out(4096, std::byte{0xee});
  const auto encoded = encode_header(golden_layout(), golden_value(), out);
  ASSERT_TRUE(encoded) << encoded.error().to_string();
  EXPECT_EQ(out, golden_header());
  // The whole object, slices included.
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    const auto slice = golden_slice(layer);
    out.insert(out.end(), slice.begin(), slice.end());
  }
  EXPECT_EQ(out.size(), golden_layout().object_bytes(0));
  EXPECT_EQ(NamespaceDigest{digest::sha256(ConstSegment(out))}.hex(),
            "168dd13674e211ac3a9a622b76135785a5fcbbaaff86007f040e4958653a3d43");
}

TEST(ChunkHeader, GoldenDecode) {
  const auto header = decode_header(golden_layout(), golden_header(), expected_of(golden_value()));
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_EQ(*header, golden_value());
  EXPECT_EQ(header->record(1, 0).crc32c, 0x273c341aU);  // Offset 244.
}

TEST(ChunkHeader, BytesBehindTheHeaderAreLeftAlone) {
  auto bytes = golden_header();
  bytes.resize(5000, std::byte{0x77});
  EXPECT_TRUE(decode_header(golden_layout(), bytes, expected_of(golden_value())));
}

TEST(ChunkHeader, AnyFlippedBitIsDetected) {
  const auto good = golden_header();
  const auto expected = expected_of(golden_value());
  for (std::size_t bit = 0; bit < good.size() * 8; bit += bit < 2048 ? 1 : 61) {
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto header = decode_header(golden_layout(), bytes, expected);
    ASSERT_FALSE(header) << "bit " << bit;
    // A flip in the version (offset 8) looks like another version.
    const bool in_version = bit / 8 >= 8 && bit / 8 < 12;
    EXPECT_EQ(header.error().code, in_version ? ErrorCode::kIncompatible : ErrorCode::kCorrupt)
        << "bit " << bit << ": " << header.error().to_string();
  }
}

TEST(ChunkHeader, AnyTruncationIsDetected) {
  const auto good = golden_header();
  for (std::size_t size = 0; size < good.size(); size += size < 300 ? 1 : 97) {
    const auto header =
        decode_header(golden_layout(), ConstSegment(good).first(size), expected_of(golden_value()));
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().code, ErrorCode::kCorrupt);
  }
}

TEST(ChunkHeader, ForeignObjectsAreIncompatible) {
  const auto bytes = golden_header();
  const std::function<void(ExpectedChunk&)> changes[] = {
      [](auto& e) { e.name.bytes[5] ^= std::byte{1}; },
      [](auto& e) { e.shard.tp_rank = 0; },
      [](auto& e) { e.shard.pp_size = 2; },
      [](auto& e) { e.key.bytes[0] ^= std::byte{1}; },
      [](auto& e) { e.parent->bytes[31] ^= std::byte{1}; },
  };
  for (const auto& change : changes) {
    auto expected = expected_of(golden_value());
    change(expected);
    const auto header = decode_header(golden_layout(), bytes, expected);
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().code, ErrorCode::kIncompatible) << header.error().to_string();
  }
  auto any_parent = expected_of(golden_value());
  any_parent.parent.reset();
  EXPECT_TRUE(decode_header(golden_layout(), bytes, any_parent));
}

TEST(ChunkHeader, AnotherShapeIsIncompatible) {
  NamespaceSpec spec = example_namespace();
  spec.object_layout = ObjectLayout::kLayer;
  auto header = decode_header(layout_of(spec), golden_header(), expected_of(golden_value()));
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, ErrorCode::kIncompatible);

  // A larger header than expected is still checked as what it is.
  spec = example_namespace();
  spec.layers = 489;
  spec.bytes_per_token = {1};
  spec.chunk_tokens = 2;
  const ChunkLayout large = layout_of(spec);
  ChunkHeader value = golden_value();
  value.unit_keys.erase(value.unit_keys.begin());
  value.records.assign(489, {.stored_bytes = 2, .crc32c = 7});
  std::vector<std::byte> out(large.header_bytes());
  ASSERT_TRUE(encode_header(large, value, out));
  header = decode_header(golden_layout(), out, expected_of(golden_value()));
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, ErrorCode::kIncompatible);
  // And where too little of it was read to tell, it is no sound object of this namespace.
  header =
      decode_header(golden_layout(), ConstSegment(out).first(4112), expected_of(golden_value()));
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, ErrorCode::kCorrupt);
}

TEST(ChunkHeader, SumsThatDoNotAddUpAreCorruptInSpiteOfAGoodCrc) {
  for (const std::size_t at : {152U, 200U, 224U, 240U, 256U, 4095U}) {
    auto bytes = golden_header();
    bytes[at] ^= std::byte{1};
    reseal(bytes);
    const auto header = decode_header(golden_layout(), bytes, expected_of(golden_value()));
    ASSERT_FALSE(header) << at;
    EXPECT_EQ(header.error().code, ErrorCode::kCorrupt) << header.error().to_string();
  }
}

TEST(ChunkHeader, AShardThatCannotBeIsCorruptEvenIfAskedFor) {
  auto bytes = golden_header();
  bytes[128] = std::byte{2};  // Rank 2 of 2.
  reseal(bytes);
  auto expected = expected_of(golden_value());
  expected.shard.tp_rank = 2;
  const auto header = decode_header(golden_layout(), bytes, expected);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, ErrorCode::kCorrupt);
}

TEST(ChunkHeader, EncodeRefusesWhatDoesNotFit) {
  std::vector<std::byte> out(4096);
  const std::function<void(ChunkHeader&)> changes[] = {
      [](auto& h) { h.unit_keys.pop_back(); },
      [](auto& h) { h.records.pop_back(); },
      [](auto& h) { h.records[2].stored_bytes = 8; },
      [](auto& h) { h.key.bytes[0] ^= std::byte{1}; },
      [](auto& h) { h.shard.tp_rank = 2; },
      [](auto& h) { h.shard.pp_size = 0; },
  };
  for (const auto& change : changes) {
    ChunkHeader header = golden_value();
    change(header);
    const auto encoded = encode_header(golden_layout(), header, out);
    ASSERT_FALSE(encoded);
    EXPECT_EQ(encoded.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(encode_header(golden_layout(), golden_value(), Segment(out).first(4095)));
}

TEST(VerifyUnit, FindsFlipsAndWrongSizes) {
  const ChunkHeader header = golden_value();
  auto slice = golden_slice(1);
  const ConstSegment unit0 = ConstSegment(slice).first(16);
  EXPECT_TRUE(verify_unit(golden_layout(), header, 1, 0, unit0));
  EXPECT_FALSE(verify_unit(golden_layout(), header, 1, 1, unit0));  // Swapped units.
  EXPECT_FALSE(verify_unit(golden_layout(), header, 1, 0, unit0.first(15)));
  slice[3] ^= std::byte{0x10};
  const auto flipped = verify_unit(golden_layout(), header, 1, 0, unit0);
  ASSERT_FALSE(flipped);
  EXPECT_EQ(flipped.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace objectcache::format
