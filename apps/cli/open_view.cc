#include "cli/open_view.h"

#include <utility>

#include "format/names.h"
#include "store/open_store.h"

namespace objectcache::cli {

OpenView::~OpenView() {
  if (reactor) reactor->stop();  // The store goes first, and its connections belong to the reactor.
  store.reset();
}

Result<OpenView> open_view(const StoreOptions& options) {
  if (const auto problem = format::tenant_problem(options.tenant)) {
    return fail(ErrorCode::kInvalidArgument, *problem, "read option", "--tenant");
  }
  OpenView out;
  out.url = options.url;
  out.call_timeout = options.deadline;
  auto store = store::open_store(options.url, options.environment);
  if (!store) return std::unexpected(std::move(store.error()));
  out.store = std::move(*store);
  auto reactor = http::Reactor::start();
  if (!reactor) return std::unexpected(std::move(reactor.error()));
  out.reactor = std::move(*reactor);
  return out;
}

}  // namespace objectcache::cli
