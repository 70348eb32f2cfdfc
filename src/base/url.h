#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "objectcache/error.h"

namespace objectcache {

/// One `name=value` of a URL, decoded.
struct UrlParameter {
  std::string name;
  std::string value;
  friend bool operator==(const UrlParameter&, const UrlParameter&) = default;
};

/// The address of a store, taken apart:
///
///   memory:                                     scheme "memory"
///   file:/var/cache/kv?durability=fsync         path "/var/cache/kv"; file:kv is relative
///   s3://bucket/team/kv?endpoint=http://h:8000  authority "bucket", path "/team/kv"
///
/// What a scheme means by its parts is its store's business; parameters are read by name through
/// base/parameters.h.
struct Url {
  std::string scheme;     ///< Lower case: a letter, then letters, digits, '+', '-', '.'.
  std::string authority;  ///< What stands between "//" and the next '/'; as written.
  std::string path;       ///< Decoded; with its leading '/' if there is one.
  std::vector<UrlParameter> parameters;  ///< In the order given; no name twice.

  /// Without parameters: for messages.
  [[nodiscard]] std::string display() const;
};

/// Parses at most 64 KiB and 256 parameters. Strict: a '%' needs two hexadecimal digits and must
/// not hide a NUL, control characters and spaces must be encoded, a parameter needs a name of
/// [a-z0-9_] and a '=', no name comes twice, no '#', no user name or password. '+' is itself.
///
/// Pure. Messages never repeat a parameter's value: it may be a secret.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

/// Encodes everything but [A-Za-z0-9._~/:-], so that parse_url reads the same back.
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace objectcache
