#include "store/file/object_names.h"

#include <fmt/format.h>

#include "store/file/object_tree.h"

namespace objectcache::store {

std::optional<TreeEntry> tree_entry(std::string_view file_name, bool is_folder) {
  if (!is_folder) {
    if (!file_name.ends_with(kObjectMark)) return std::nullopt;
    file_name.remove_suffix(1);
  }
  std::string text(file_name);
  if (object_key_problem({text})) return std::nullopt;
  if (is_folder) text += '/';
  return TreeEntry{.sort_key = std::move(text)};
}

std::optional<std::string> file_key_problem(const ObjectKey& key) {
  if (auto problem = object_key_problem(key)) return problem;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= key.text.size(); ++i) {
    if (i < key.text.size() && key.text[i] != '/') continue;
    if (i - start > ObjectTree::kComponentBytesMax) {
      return fmt::format("in a file store a component of a key has at most {} bytes",
                         ObjectTree::kComponentBytesMax);
    }
    start = i + 1;
  }
  return std::nullopt;
}

}  // namespace objectcache::store
