#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objectcache/error.h"
#include "s3/credentials.h"
#include "s3/uri.h"

namespace objectcache::s3 {

/// The metadata services that hand out short-lived credentials inside a cloud: which requests to
/// send and what the answers mean. Sending them is the business of store/s3.
///
/// Instance (EC2, IMDSv2), in this order, to kInstanceEndpoint:
///   instance_token_request()            -> body: the token
///   instance_role_request(token)        -> parse_instance_role(body)
///   instance_credentials_request(token, role) -> parse_metadata_credentials(body)
///   instance_region_request(token)      -> body: the region (optional)
/// Container (ECS, EKS): container_request(...) -> parse_metadata_credentials(body).
struct MetadataRequest {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;  ///< May hold secrets: never log.
};

inline constexpr std::string_view kInstanceEndpoint = "http://169.254.169.254";
inline constexpr std::string_view kContainerEndpoint = "http://169.254.170.2";
/// No answer of these services is larger than some kilobytes.
inline constexpr std::size_t kMetadataBodyBytesMax = 64 * 1024;

[[nodiscard]] MetadataRequest instance_token_request();
[[nodiscard]] MetadataRequest instance_role_request(const Secret& token);
[[nodiscard]] MetadataRequest instance_credentials_request(const Secret& token,
                                                           std::string_view role);
[[nodiscard]] MetadataRequest instance_region_request(const Secret& token);
/// The token of the first answer; refuses what could not stand in a header.
[[nodiscard]] Result<Secret> parse_instance_token(std::string_view body);
[[nodiscard]] Result<std::string> parse_instance_role(std::string_view body);

/// The four variables that a container finds in its environment; empty where not set.
struct ContainerSettings {
  std::string relative_uri;  ///< AWS_CONTAINER_CREDENTIALS_RELATIVE_URI
  std::string full_uri;      ///< AWS_CONTAINER_CREDENTIALS_FULL_URI
  Secret token;  ///< AWS_CONTAINER_AUTHORIZATION_TOKEN, or the content of ..._TOKEN_FILE
};
struct ContainerRequest {
  Endpoint endpoint;
  MetadataRequest request;
};
/// kNotFound: no variable is set. kInvalidArgument: plain http to an address that is neither this
/// machine nor one of the known services, which would give the token away.
[[nodiscard]] Result<ContainerRequest> container_request(const ContainerSettings& settings);

/// The JSON of both services. The error shows the service's own code and message, never the body.
[[nodiscard]] Result<Credentials> parse_metadata_credentials(std::string_view body);

}  // namespace objectcache::s3
