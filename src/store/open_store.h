#pragma once

#include <memory>
#include <string_view>

#include "base/url.h"
#include "store/object_store.h"

namespace objectcache {
struct Environment;
}

namespace objectcache::store {

/// Opens the store that a URL names: the one place that knows every backend.
///
///   memory:    file:/dir    s3://bucket/prefix?endpoint=...     parameters: docs/url.md
///
/// `environment` is what a backend may draw on beside the URL (credentials); copied as needed.
/// Unknown schemes and parameters are refused by name (kInvalidArgument). May read local files (the
/// directory of a file store, profiles), but talks to no server.
///
/// Threads: any. What a store's loops and lifetimes must be says store/object_store.h.
[[nodiscard]] Result<std::unique_ptr<ObjectStore>> open_store(std::string_view url,
                                                              const Environment& environment);
[[nodiscard]] Result<std::unique_ptr<ObjectStore>> open_store(const Url& url,
                                                              const Environment& environment);

}  // namespace objectcache::store
