#pragma once

#include <memory>
#include <string>

#include "cache/admin.h"
#include "cli/commands.h"
#include "http/reactor.h"
#include "store/object_store.h"

namespace objectcache::cli {

/// A store opened without a cache on it, for the commands that look after stores.
struct OpenView {
  std::unique_ptr<http::Reactor> reactor;
  std::unique_ptr<store::ObjectStore> store;
  std::string url;  ///< As given.
  Duration call_timeout{};

  [[nodiscard]] cache::StoreView view() const {
    return {.loop = *reactor, .store = *store, .call_timeout = call_timeout};
  }
  OpenView() = default;
  OpenView(OpenView&&) = default;
  OpenView& operator=(OpenView&&) = default;
  ~OpenView();
};

[[nodiscard]] Result<OpenView> open_view(const StoreOptions& options);

}  // namespace objectcache::cli
