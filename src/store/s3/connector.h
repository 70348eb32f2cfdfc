#pragma once

#include <cstdint>
#include <memory>

#include "base/event_loop.h"
#include "http/client.h"
#include "objectcache/error.h"
#include "s3/uri.h"

namespace objectcache::store_s3 {

/// Makes the HTTP client of one endpoint for one loop: connection pools in the product
/// (pool_connector.h), scripted clients in tests.
///
/// Threads: any.   Lifetimes: the clients are used and destroyed on the thread of their loop.
class Connector {
 public:
  struct Options {
    std::uint32_t connections = 1;
    Duration connect_timeout = std::chrono::seconds(3);
    std::uint64_t receive_buffer_bytes = 0;  ///< 0: the system's choice.
  };
  virtual ~Connector() = default;
  [[nodiscard]] virtual Result<std::shared_ptr<http::Client>> connect(EventLoop& loop,
                                                                      const s3::Endpoint& endpoint,
                                                                      const Options& options) = 0;
};

}  // namespace objectcache::store_s3
