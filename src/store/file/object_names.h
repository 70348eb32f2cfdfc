#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/object_store.h"

namespace objectcache::store {

// How keys and file names belong together; pure.

/// Marks the file of an object; no key can hold it, so folders never clash with objects.
inline constexpr char kObjectMark = '@';

/// Where the object lies, relative to the root.
[[nodiscard]] inline std::string file_path(const ObjectKey& key) { return key.text + kObjectMark; }

/// "a/b" of "a/b/c"; empty for "a".
[[nodiscard]] inline std::string parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash));
}

/// What an entry of a folder is to the store. `sort_key` puts entries into the order of the keys
/// below them: a folder sorts as if its name ended with '/'. Empty: not of this store.
struct TreeEntry {
  std::string sort_key;
  [[nodiscard]] bool is_folder() const { return sort_key.ends_with('/'); }
  friend auto operator<=>(const TreeEntry&, const TreeEntry&) = default;
};
[[nodiscard]] std::optional<TreeEntry> tree_entry(std::string_view file_name, bool is_folder);

/// Empty, or says why the file store cannot hold this valid key.
[[nodiscard]] std::optional<std::string> file_key_problem(const ObjectKey& key);

}  // namespace objectcache::store
