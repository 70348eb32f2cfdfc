#pragma once

#include <string>

#include "objectcache/error.h"
#include "s3/metadata.h"

namespace objectcache {
struct Environment;
}

namespace objectcache::store_s3 {

/// What the program found in its environment. The library reads none itself: apps fill this in, as
/// far as it is there; everything may be empty.
struct S3Environment {
  std::string access_key_id;     ///< AWS_ACCESS_KEY_ID
  s3::Secret secret_access_key;  ///< AWS_SECRET_ACCESS_KEY
  s3::Secret session_token;      ///< AWS_SESSION_TOKEN
  std::string region;            ///< AWS_REGION, else AWS_DEFAULT_REGION
  std::string profile;           ///< AWS_PROFILE
  std::string endpoint_url;      ///< AWS_ENDPOINT_URL_S3, else AWS_ENDPOINT_URL
  std::string ca_bundle;         ///< AWS_CA_BUNDLE
  std::string credentials_file;  ///< The text of ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE)
  std::string config_file;       ///< The text of ~/.aws/config (AWS_CONFIG_FILE)
  s3::ContainerSettings container;
  /// Ask the instance metadata service if nothing else gives credentials
  /// (AWS_EC2_METADATA_DISABLED is not "true").
  bool instance_metadata = true;
};

/// Picks the variables out of a program's environment and reads the profile files that they, or the
/// home directory, name. A file that is not there is empty; one that cannot be read is an error.
[[nodiscard]] Result<S3Environment> read_environment(const Environment& environment);

}  // namespace objectcache::store_s3
