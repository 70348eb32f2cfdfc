#include "store/object_store.h"

#include <string_view>

namespace objectcache::store {

std::optional<std::string> object_key_problem(const ObjectKey& key) {
  const std::string_view text = key.text;
  if (text.empty()) return "an object key must not be empty";
  if (text.size() > 900) return "an object key has at most 900 bytes";
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == '/') {
      const std::string_view part = text.substr(start, i - start);
      if (part.empty()) return "an object key has no empty component";
      if (part == "." || part == "..") return "an object key has no '.' or '..' component";
      start = i + 1;
      continue;
    }
    const char c = text[i];
    const bool known = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!known) return "an object key consists of A-Z a-z 0-9 . _ - and /";
  }
  return std::nullopt;
}

}  // namespace objectcache::store
