#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "objectcache/error.h"
#include "objectcache/export.h"

namespace objectcache {

/// Which part of the KV a rank holds: beside the namespace, not inside it. Two ranks of one model
/// share namespace and chunk keys and differ in the shard.
struct OBJECTCACHE_EXPORT Shard {
  std::uint16_t tp_rank = 0;  ///< Tensor-parallel rank, below tp_size.
  std::uint16_t tp_size = 1;  ///< At least 1.
  std::uint16_t pp_rank = 0;  ///< Pipeline-parallel rank, below pp_size.
  std::uint16_t pp_size = 1;  ///< At least 1.

  friend auto operator<=>(const Shard&, const Shard&) = default;
  /// "tp0of1-pp0of1": the last component of an object's name.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] static Result<Shard> parse(std::string_view text);
};

}  // namespace objectcache
