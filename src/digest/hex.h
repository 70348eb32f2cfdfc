#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace objectcache::digest {

/// Appends two lower-case hexadecimal digits a byte.
void append_hex(std::string& out, std::span<const std::byte> data);
[[nodiscard]] std::string hex(std::span<const std::byte> data);
/// Empty unless `text` has an even number of hexadecimal digits (either case) and nothing else.
[[nodiscard]] std::optional<std::vector<std::byte>> from_hex(std::string_view text);

/// Base64 of RFC 4648 §4, with padding.
[[nodiscard]] std::string base64(std::span<const std::byte> data);

}  // namespace objectcache::digest
