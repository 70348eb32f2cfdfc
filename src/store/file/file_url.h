#pragma once

#include "base/url.h"
#include "store/file/file_store.h"

namespace objectcache::store {

/// The options that `file:/dir?...` stands for; file/README.md has the table.
[[nodiscard]] Result<FileStore::Options> file_options(const Url& url);

}  // namespace objectcache::store
