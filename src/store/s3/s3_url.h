#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/url.h"
#include "objectcache/error.h"
#include "s3/credentials.h"
#include "store/s3/connector.h"
#include "store/s3/credential_source.h"
#include "store/s3/s3_environment.h"
#include "store/s3/s3_options.h"
#include "store/s3/s3_store.h"

namespace objectcache {
struct Environment;
}

namespace objectcache::store_s3 {

/// What a URL, the environment and the profile files say together. docs/url.md has the table of
/// parameters; a parameter wins over the environment, and that over a profile.
struct S3Settings {
  S3Options options;
  /// Who we are, if that is known without asking anyone: explicit keys, the environment, a profile.
  std::optional<s3::Credentials> credentials;
  /// Else these are asked, in this order.
  s3::ContainerSettings container;
  bool instance_metadata = true;
};
/// "s3://bucket/prefix?endpoint=http://host:port&...". kInvalidArgument names the parameter that is
/// unknown or wrong, and never shows a secret.
[[nodiscard]] Result<S3Settings> read_s3_url(const Url& url, const S3Environment& environment);

/// Where credentials come from. `connector` is used for the metadata services only.
[[nodiscard]] Result<std::shared_ptr<CredentialSource>> credential_source(
    const S3Settings& settings, std::shared_ptr<const WallClock> wall,
    std::shared_ptr<Connector> connector);

/// The store that `url` names, on real connections: its loops must be http::Reactors. Does not talk
/// to the store yet.
[[nodiscard]] Result<std::unique_ptr<S3Store>> open_s3(const Url& url,
                                                       const S3Environment& environment,
                                                       std::shared_ptr<const WallClock> wall);
/// With the machine's clock, and with what the program's environment names.
[[nodiscard]] Result<std::unique_ptr<S3Store>> open_s3(const Url& url,
                                                       const Environment& environment);

}  // namespace objectcache::store_s3
