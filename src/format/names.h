#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::format {

inline constexpr std::string_view kDefaultTenant = "default";
inline constexpr std::size_t kTenantBytesMax = 64;
inline constexpr std::size_t kPrefixBytesMax = 512;

/// "tp0of8-pp0of1". Requires a valid shard.
[[nodiscard]] std::string shard_text(const Shard& shard);
/// The inverse; empty for any other text, leading zeros included.
[[nodiscard]] std::optional<Shard> parse_shard(std::string_view text);
/// Sizes at least 1, ranks below them.
[[nodiscard]] bool is_valid(const Shard& shard);

/// Empty, or which rule the tenant breaks: 1 to 64 of [a-z0-9._-], the first one of [a-z0-9].
[[nodiscard]] std::optional<std::string> tenant_problem(std::string_view tenant);
/// Empty, or which rule the prefix breaks. A prefix is empty or up to 512 bytes of
/// [A-Za-z0-9._/-] without leading or trailing '/' and without empty, "." or ".." component.
[[nodiscard]] std::optional<std::string> prefix_problem(std::string_view prefix);

/// A name taken apart.
struct ParsedObjectName {
  std::string tenant;
  std::string namespace_hex;  ///< The first 32 digits of the namespace digest.
  ChunkKey chunk;
  Shard shard;
  std::uint32_t object_layer = 0;  ///< As in ByteRange.
  friend bool operator==(const ParsedObjectName&, const ParsedObjectName&) = default;
};

/// The names of everything that one tenant keeps in one namespace (docs/formats/names.md):
/// `<prefix>/<tenant>/<namespace digest, 32 hex>/<2 hex>/<chunk key>/<shard>`, and for layer
/// l > 0 of the layer layout `<shard>.l<4 digits>`. Always a valid store key (at most 900 bytes).
///
/// Immutable. Threads: any.
class ObjectNames {
 public:
  /// kInvalidArgument where prefix_problem or tenant_problem have something to say.
  static Result<ObjectNames> create(std::string_view prefix, std::string_view tenant,
                                    const NamespaceDigest& name);

  /// Requires a valid shard and object_layer < 1024.
  [[nodiscard]] std::string object(const ChunkKey& chunk, const Shard& shard,
                                   std::uint32_t object_layer = 0) const;
  /// Describes the namespace in words: its canonical JSON.
  [[nodiscard]] std::string namespace_json() const { return namespace_prefix_ + "namespace.json"; }
  /// Everything of this namespace starts with it; ends with '/'.
  [[nodiscard]] const std::string& namespace_prefix() const { return namespace_prefix_; }
  /// All shards and layers of one chunk start with it; ends with '/'.
  [[nodiscard]] std::string chunk_prefix(const ChunkKey& chunk) const;

 private:
  ObjectNames() = default;
  std::string namespace_prefix_;
};

/// All that a tenant owns starts with it; ends with '/'. Requires valid arguments.
[[nodiscard]] std::string tenant_prefix(std::string_view prefix, std::string_view tenant);

/// Takes a name apart; empty for anything that ObjectNames::object(prefix...) does not produce.
[[nodiscard]] std::optional<ParsedObjectName> parse_object_name(std::string_view prefix,
                                                                std::string_view name);

}  // namespace objectcache::format
