#pragma once

#include <memory>

#include "s3/metadata.h"
#include "store/s3/connector.h"
#include "store/s3/credential_source.h"

namespace objectcache::store_s3 {

/// Fetches credentials from the metadata service of a container: one request.
[[nodiscard]] Result<FetchedCredentials::Fetch> container_fetch(
    std::shared_ptr<Connector> connector, const s3::ContainerSettings& settings);

/// Fetches credentials from the metadata service of a virtual machine: three requests (IMDSv2).
/// `endpoint` is s3::kInstanceEndpoint but in tests.
[[nodiscard]] FetchedCredentials::Fetch instance_fetch(std::shared_ptr<Connector> connector,
                                                       s3::Endpoint endpoint);

}  // namespace objectcache::store_s3
