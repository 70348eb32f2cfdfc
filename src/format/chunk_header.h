#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/chunk_layout.h"
#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::format {

/// What the header stores of one layer of one unit.
struct UnitRecord {
  std::uint32_t stored_bytes = 0;
  std::uint32_t crc32c = 0;  ///< Of the stored bytes.
  friend bool operator==(const UnitRecord&, const UnitRecord&) = default;
};

/// The header of a chunk object, decoded (docs/formats/chunk_object.md). A plain value.
struct ChunkHeader {
  NamespaceDigest name;
  Shard shard;
  ChunkKey key;     ///< Equals the key of the last unit.
  ChunkKey parent;  ///< Key of the chunk before; all zero for the first of a prompt.
  std::uint64_t created_unix_ms = 0;
  std::vector<UnitKey> unit_keys;   ///< units() of them.
  std::vector<UnitRecord> records;  ///< layers() x units(), layer by layer.

  /// Requires layer < layers and unit < unit_keys.size().
  [[nodiscard]] const UnitRecord& record(std::uint32_t layer, std::uint32_t unit) const {
    return records[std::size_t{layer} * unit_keys.size() + unit];
  }
  friend bool operator==(const ChunkHeader&, const ChunkHeader&) = default;
};

/// What the reader asked for; a header that says otherwise is refused.
struct ExpectedChunk {
  NamespaceDigest name;
  Shard shard;
  ChunkKey key;
  std::optional<ChunkKey> parent;  ///< Empty: any parent will do.
};

/// Writes the header, padding included, to `out` (exactly layout.header_bytes()).
/// kInvalidArgument: counts, stored lengths or key that do not fit the layout.
[[nodiscard]] Result<void> encode_header(const ChunkLayout& layout, const ChunkHeader& header,
                                         Segment out);

/// Reads a header from the first bytes of an object; `bytes` may be longer than the header.
/// Total: any input gives a header or one of
/// kCorrupt: too short, wrong magic, wrong CRC, lengths or keys that do not add up.
/// kIncompatible: sound, but another version, namespace, layout, shard, key or parent than asked
/// for: a renamed or swapped object.
[[nodiscard]] Result<ChunkHeader> decode_header(const ChunkLayout& layout, ConstSegment bytes,
                                                const ExpectedChunk& expected);

/// Checks the bytes of one layer of one unit against its record. kCorrupt if they differ.
/// Requires layer < layout.layers(), unit < layout.units(), a header of that layout.
[[nodiscard]] Result<void> verify_unit(const ChunkLayout& layout, const ChunkHeader& header,
                                       std::uint32_t layer, std::uint32_t unit,
                                       ConstSegment stored);

}  // namespace objectcache::format
