#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "digest/crc32c.h"
#include "digest/hex.h"
#include "digest/md5.h"
#include "digest/sha256.h"

namespace objectcache::digest {
namespace {

std::string sha256_hex(std::string_view text) { return hex(sha256(bytes_of(text))); }
std::vector<std::byte> repeated(unsigned char value, std::size_t count) {
  return std::vector<std::byte>(count, std::byte{value});
}

TEST(Sha256, MatchesThePublishedVectors) {  // FIPS 180-4, examples of NIST
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  const std::string text = "the quick brown fox jumps over the lazy dog, again and again and again";
  const auto whole = sha256(bytes_of(text));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto a = bytes_of(std::string_view(text).substr(0, cut));
    const auto b = bytes_of(std::string_view(text).substr(cut));
    EXPECT_EQ(sha256({a, b}), whole);
    Sha256 hasher;
    hasher.update(a);
    hasher.update(b);
    EXPECT_EQ(hasher.finish(), whole);
  }
}

TEST(Sha256, ObjectIsAsNewAfterFinishAndSurvivesAMove) {
  Sha256 hasher;
  hasher.update(bytes_of("something else"));
  static_cast<void>(hasher.finish());
  hasher.update(bytes_of("a"));
  Sha256 moved = std::move(hasher);
  moved.update(bytes_of("bc"));
  EXPECT_EQ(moved.finish(), sha256(bytes_of("abc")));
}

TEST(Sha256, ThreadsDoNotDisturbEachOther) {
  const auto expected = sha256(bytes_of("abc"));
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&wrong, &expected, t] {
        for (int i = 0; i < 2000; ++i) wrong[t] += sha256(bytes_of("abc")) != expected ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(HmacSha256, MatchesRfc4231) {
  struct Case {
    std::vector<std::byte> key;
    std::vector<std::byte> data;
    std::string expected;
  };
  const auto text = [](std::string_view t) {
    const auto b = bytes_of(t);
    return std::vector<std::byte>(b.begin(), b.end());
  };
  const Case cases[] = {
      {repeated(0x0b, 20), text("Hi There"),
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {text("Jefe"), text("what do ya want for nothing?"),
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {repeated(0xaa, 20), repeated(0xdd, 50),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {*from_hex("0102030405060708090a0b0c0d0e0f10111213141516171819"), repeated(0xcd, 50),
       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {repeated(0xaa, 131), text("Test Using Larger Than Block-Size Key - Hash Key First"),
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {repeated(0xaa, 131),
       text("This is a test using a larger than block-size key and a larger than block-size data. "
            "The key needs to be hashed before being used by the HMAC algorithm."),
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(hex(hmac_sha256(c.key, c.data)), c.expected);
    const ConstSegment all(c.data);
    EXPECT_EQ(hex(hmac_sha256(c.key, {all.first(5), all.subspan(5)})), c.expected);
  }
}

TEST(HmacSha256, KeyOfExactlyOneBlockIsUsedAsItIs) {
  const auto block = repeated(0x11, 64);
  const auto longer = repeated(0x11, 65);
  EXPECT_NE(hmac_sha256(block, bytes_of("x")), hmac_sha256(longer, bytes_of("x")));
  EXPECT_EQ(hmac_sha256(longer, bytes_of("x")), hmac_sha256(sha256(longer), bytes_of("x")));
}

TEST(EqualInConstantTime, ComparesContentAndLength) {
  EXPECT_TRUE(equal_in_constant_time(bytes_of("abc"), bytes_of("abc")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), bytes_of("abd")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), bytes_of("ab")));
  EXPECT_TRUE(equal_in_constant_time({}, {}));
}

TEST(Crc32c, MatchesRfc3720) {  // appendix B.4, bytes in the order of the wire
  EXPECT_EQ(crc32c(repeated(0x00, 32)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(repeated(0xff, 32)), 0x62a8ab43U);
  std::vector<std::byte> rising(32);
  for (std::size_t i = 0; i < 32; ++i) rising[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(rising), 0x46dd794eU);
  std::ranges::reverse(rising);
  EXPECT_EQ(crc32c(rising), 0x113fdb5cU);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, ExtendEqualsTheWhole) {
  std::vector<std::byte> data(70'001);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * i * 31 + i);
  const std::span<const std::byte> all(data);
  const std::uint32_t whole = crc32c(all);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{4096},
                                std::size_t{65'537}, data.size()}) {
    EXPECT_EQ(crc32c_extend(crc32c(all.first(cut)), all.subspan(cut)), whole);
  }
  data[33'333] ^= std::byte{0x10};
  EXPECT_NE(crc32c(all), whole);
}

TEST(Hex, RoundTripsAndRefuses) {
  const std::vector<std::byte> data{std::byte{0x00}, std::byte{0xab}, std::byte{0x7f}};
  EXPECT_EQ(hex(data), "00ab7f");
  EXPECT_EQ(from_hex("00aB7f"), data);
  EXPECT_EQ(from_hex("0"), std::nullopt);
  EXPECT_EQ(from_hex("0g"), std::nullopt);
  EXPECT_EQ(from_hex(" 0"), std::nullopt);
  EXPECT_TRUE(from_hex("")->empty());
}

TEST(Base64, MatchesRfc4648) {
  EXPECT_EQ(base64(bytes_of("")), "");
  EXPECT_EQ(base64(bytes_of("f")), "Zg==");
  EXPECT_EQ(base64(bytes_of("fo")), "Zm8=");
  EXPECT_EQ(base64(bytes_of("foo")), "Zm9v");
  EXPECT_EQ(base64(bytes_of("foob")), "Zm9vYg==");
  EXPECT_EQ(base64(bytes_of("fooba")), "Zm9vYmE=");
  EXPECT_EQ(base64(bytes_of("foobar")), "Zm9vYmFy");
}

TEST(Md5, MatchesRfc1321) {
  EXPECT_EQ(hex(md5({})), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex(md5(bytes_of("abc"))), "900150983cd24fb0d6963f7d28e17f72");
}

}  // namespace
}  // namespace objectcache::digest
