#pragma once

#include "base/url.h"
#include "store/memory/memory_store.h"

namespace objectcache::store {

/// The options that `memory:?...` stands for; memory/README.md has the table.
[[nodiscard]] Result<MemoryStore::Options> memory_options(const Url& url);

}  // namespace objectcache::store
