#include <algorithm>
#include <cctype>

#include "http/client.h"

namespace objectcache::http {

std::optional<std::string_view> find_header(const Headers& headers, std::string_view name) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (const Header& header : headers) {
    if (std::ranges::equal(header.name, name, same)) return header.value;
  }
  return std::nullopt;
}

}  // namespace objectcache::http
