#include "cli/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace objectcache::cli {
namespace {

std::string file_of(std::string json, std::size_t data_bytes) {
  json.append((8 - json.size() % 8) % 8, ' ');
  const std::uint64_t length = json.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + json + std::string(data_bytes, 'x');
}

Result<SafetensorsHead> parse(const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file));
  const auto size = safetensors_head_bytes(bytes.first<8>(), bytes.size());
  if (!size) return std::unexpected(size.error());
  return parse_safetensors_head(bytes.first(*size), bytes.size());
}

constexpr char kGood[] =
    R"({"b":{"dtype":"F16","shape":[2,2],"data_offsets":[8,16]},"__metadata__":{"k":"v"},)"
    R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

TEST(Safetensors, ReadsTensorsInOrderOfTheirData) {
  const auto head = parse(file_of(kGood, 16));
  ASSERT_TRUE(head.has_value()) << head.error().to_string();
  ASSERT_EQ(head->tensors.size(), 2U);
  EXPECT_EQ(head->tensors[0].name, "a");
  EXPECT_EQ(head->tensors[0].dtype, "F32");
  EXPECT_EQ(head->tensors[1].shape, (std::vector<std::uint64_t>{2, 2}));
  EXPECT_EQ(head->tensors[1].size_bytes(), 8U);
  EXPECT_EQ(head->data_offset % 8, 0U);
}

TEST(Safetensors, WritesWhatItReads) {
  const auto head = parse(file_of(kGood, 16));
  ASSERT_TRUE(head.has_value());
  const auto again = parse(make_safetensors_head(head->tensors) + std::string(16, 'y'));
  ASSERT_TRUE(again.has_value()) << again.error().to_string();
  EXPECT_EQ(again->tensors.size(), 2U);
  EXPECT_EQ(again->tensors[1].name, "b");
}

struct Hostile {
  const char* what;
  std::string json;
  std::size_t data_bytes;
};

class HostileSafetensors : public testing::TestWithParam<Hostile> {};

TEST_P(HostileSafetensors, IsRefusedByName) {
  const auto head = parse(file_of(GetParam().json, GetParam().data_bytes));
  ASSERT_FALSE(head.has_value()) << GetParam().what;
  EXPECT_EQ(head.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(head.error().message.empty());
}

std::string tensor(const std::string& shape, const std::string& offsets,
                   const std::string& dtype = "U8") {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

INSTANTIATE_TEST_SUITE_P(
    Heads, HostileSafetensors,
    testing::Values(
        Hostile{"not JSON", "{", 0}, Hostile{"no object", "[]", 0}, Hostile{"a number", "7", 0},
        Hostile{"unknown dtype", tensor("[4]", "[0,4]", "Q4"), 4},
        Hostile{"beyond the file", tensor("[5]", "[0,5]"), 4},
        Hostile{"backwards", tensor("[4]", "[4,0]"), 4},
        Hostile{"hole at the start", tensor("[3]", "[1,4]"), 4},
        Hostile{"foreign bytes at the end", tensor("[3]", "[0,3]"), 4},
        Hostile{"shape and size differ", tensor("[2]", "[0,4]"), 4},
        Hostile{"overflowing shape", tensor("[4294967296,4294967296,4]", "[0,0]"), 0},
        Hostile{"negative shape", tensor("[-4]", "[0,4]"), 4},
        Hostile{"fractional shape", tensor("[4.0]", "[0,4]"), 4},
        Hostile{"nine dimensions", tensor("[1,1,1,1,1,1,1,1,4]", "[0,4]"), 4},
        Hostile{"one offset", tensor("[4]", "[0]"), 4},
        Hostile{"three offsets", tensor("[4]", "[0,4,4]"), 4},
        Hostile{"missing shape", R"({"t":{"dtype":"U8","data_offsets":[0,4]}})", 4},
        Hostile{"unknown field", R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1}})",
                4},
        Hostile{"repeated field",
                R"({"t":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
        Hostile{"repeated tensor",
                R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("t":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                4},
        Hostile{"overlap",
                R"({"t":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                R"("u":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                4},
        Hostile{"nested metadata", R"({"__metadata__":{"a":{"b":"c"}}})", 0},
        Hostile{"deep nesting", std::string(100'000, '[') + std::string(100'000, ']'), 0}));

TEST(Safetensors, RefusesALengthBeyondTheFileOrTheLimit) {
  std::array<std::byte, 8> first{};
  first.fill(std::byte{0xff});
  EXPECT_FALSE(safetensors_head_bytes(first, 1U << 30).has_value());
  first.fill(std::byte{0});
  first[0] = std::byte{9};
  EXPECT_FALSE(safetensors_head_bytes(first, 16).has_value());
  EXPECT_FALSE(safetensors_head_bytes(first, 4).has_value());
  EXPECT_EQ(safetensors_head_bytes(first, 17).value(), 17U);
}

}  // namespace
}  // namespace objectcache::cli
