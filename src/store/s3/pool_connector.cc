#include "store/s3/pool_connector.h"

#include <utility>

#include "http/connection_pool.h"
#include "http/reactor.h"

namespace objectcache::store_s3 {

Result<std::shared_ptr<http::Client>> PoolConnector::connect(EventLoop& loop,
                                                             const s3::Endpoint& endpoint,
                                                             const Options& options) {
  auto* const reactor = dynamic_cast<http::Reactor*>(&loop);
  if (reactor == nullptr) {
    return fail(ErrorCode::kInvalidArgument,
                "an S3 store needs the loop of a reactor (http/reactor.h)", "connect",
                endpoint.url());
  }
  http::ConnectionPool::Options pool;
  pool.hosts = {{.host = endpoint.host, .port = endpoint.port}};
  pool.tls = endpoint.tls;
  pool.host_header = endpoint.authority();
  pool.ca_file = ca_file_;
  pool.connections_max = options.connections;
  pool.receive_buffer_bytes = options.receive_buffer_bytes;
  pool.connect_timeout = options.connect_timeout;
  auto made = http::ConnectionPool::create(*reactor, std::move(pool));
  if (!made) {
    made.error().key = endpoint.url();
    return std::unexpected(std::move(made.error()));
  }
  return std::shared_ptr<http::Client>(std::move(*made));
}

}  // namespace objectcache::store_s3
