#include "digest/hex.h"

#include <algorithm>

namespace objectcache::digest {
namespace {

int digit_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void append_hex(std::string& out, std::span<const std::byte> data) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const std::size_t start = out.size();
  out.resize(start + 2 * data.size());
  char* to = out.data() + start;
  for (const std::byte b : data) {
    *to++ = kDigits[std::to_integer<unsigned>(b) >> 4];
    *to++ = kDigits[std::to_integer<unsigned>(b) & 15U];
  }
}

std::string hex(std::span<const std::byte> data) {
  std::string out;
  append_hex(out, data);
  return out;
}

std::optional<std::vector<std::byte>> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> out(text.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = digit_value(text[2 * i]);
    const int low = digit_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out[i] = static_cast<std::byte>(high * 16 + low);
  }
  return out;
}

std::string base64(std::span<const std::byte> data) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((data.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < data.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, data.size() - i);
    unsigned bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = (bits << 8) | (j < count ? std::to_integer<unsigned>(data[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out.push_back(j <= count ? kDigits[(bits >> (18 - 6 * j)) & 63U] : '=');
    }
  }
  return out;
}

}  // namespace objectcache::digest
