#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "objectcache/error.h"
#include "s3/credentials.h"

namespace objectcache::s3 {

/// What the shared files (~/.aws/credentials, ~/.aws/config) say about one profile.
struct Profile {
  std::optional<Credentials> credentials;  ///< Set if both key id and secret are there.
  std::optional<std::string> region;
  std::optional<std::string> endpoint_url;
  std::optional<std::string> addressing_style;  ///< "path", "virtual" or "auto".
  std::optional<std::string> ca_bundle;
};

/// Reads the texts of both files, of which either may be empty. For keys that stand in both, the
/// credentials file wins, as with AWS's own tools. `[profile x]` in the config file and `[x]` in
/// the credentials file are the same profile; "default" needs no word "profile".
///
/// kNotFound: neither file knows `profile`. kInvalidArgument: a file is malformed or larger than 1
/// MiB; the message has the line number but never the line, which may hold a secret.
[[nodiscard]] Result<Profile> read_profile(std::string_view credentials_text,
                                           std::string_view config_text, std::string_view profile);

}  // namespace objectcache::s3
