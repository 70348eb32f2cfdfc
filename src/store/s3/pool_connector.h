#pragma once

#include <string>

#include "store/s3/connector.h"

namespace objectcache::store_s3 {

/// The real Connector: connection pools on reactors.
///
/// Threads: any.
class PoolConnector final : public Connector {
 public:
  /// `ca_file`: PEM of the only authorities to trust; empty: the system's.
  explicit PoolConnector(std::string ca_file) : ca_file_(std::move(ca_file)) {}

  /// kInvalidArgument: `loop` is no http::Reactor, or the CA file cannot be read.
  [[nodiscard]] Result<std::shared_ptr<http::Client>> connect(EventLoop& loop,
                                                              const s3::Endpoint& endpoint,
                                                              const Options& options) override;

 private:
  const std::string ca_file_;
};

}  // namespace objectcache::store_s3
