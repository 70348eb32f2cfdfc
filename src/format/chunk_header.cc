#include "format/chunk_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "digest/crc32c.h"
#include "format/names.h"

namespace objectcache::format {
namespace {

// Offsets of docs/formats/chunk_object.md, "Header".
constexpr std::array<unsigned char, 8> kMagic = {0x89, 'O', 'C', 'K', 'V', '\r', '\n', 0x1a};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kHeaderBytesAt = 12;
constexpr std::size_t kLayersAt = 16;
constexpr std::size_t kUnitsAt = 20;
constexpr std::size_t kUnitTokensAt = 24;
constexpr std::size_t kObjectLayoutAt = 28;
constexpr std::size_t kNamespaceAt = 32;
constexpr std::size_t kChunkKeyAt = 64;
constexpr std::size_t kParentKeyAt = 96;
constexpr std::size_t kShardAt = 128;
constexpr std::size_t kObjectBytesAt = 136;
constexpr std::size_t kCreatedAt = 144;
constexpr std::size_t kReservedAt = 152;
constexpr std::size_t kCrcAt = 156;
static_assert(kCrcAt + 4 == kHeaderFixedBytes);
static_assert(std::endian::native == std::endian::little, "fields are copied as they lie");

constexpr std::string_view kDecode = "decode header";

template <class T>
T load(ConstSegment bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.subspan(at, sizeof(T)).data(), sizeof(T));
  return value;
}

template <class T>
void store(Segment bytes, std::size_t at, const T& value) {
  std::memcpy(bytes.subspan(at, sizeof(T)).data(), &value, sizeof(T));
}

template <class D>
D load_digest(ConstSegment bytes, std::size_t at) {
  return D{load<decltype(D::bytes)>(bytes, at)};
}

/// Of the whole padded header with the CRC's own four bytes taken as zero.
std::uint32_t header_crc(ConstSegment header) {
  constexpr std::array<std::byte, 4> kZero{};
  std::uint32_t crc = digest::crc32c(header.first(kCrcAt));
  crc = digest::crc32c_extend(crc, kZero);
  return digest::crc32c_extend(crc, header.subspan(kCrcAt + 4));
}

std::unexpected<Error> corrupt(std::string cause) {
  return fail(ErrorCode::kCorrupt, std::move(cause), std::string(kDecode));
}
std::unexpected<Error> incompatible(std::string cause) {
  return fail(ErrorCode::kIncompatible, std::move(cause), std::string(kDecode));
}
std::unexpected<Error> unfit(std::string cause) {
  return fail(ErrorCode::kInvalidArgument, std::move(cause), "encode header");
}

std::size_t used_bytes(const ChunkLayout& layout) {
  return kHeaderFixedBytes + std::size_t{kUnitKeyBytes} * layout.units() +
         std::size_t{kUnitRecordBytes} * layout.layers() * layout.units();
}

/// Magic, version and CRC: after it, the bytes are what some writer wrote. A header whose claimed
/// size differs from the expected one is checked over its own size, so that the object of another
/// namespace is told from a damaged one.
Result<void> check_sound(const ChunkLayout& layout, ConstSegment bytes) {
  if (bytes.size() < kHeaderFixedBytes) {
    return corrupt(fmt::format("only {} bytes, too short for a header", bytes.size()));
  }
  if (std::memcmp(bytes.data() + kMagicAt, kMagic.data(), kMagic.size()) != 0) {
    return corrupt("the object does not begin like a chunk object (wrong magic)");
  }
  const auto version = load<std::uint32_t>(bytes, kVersionAt);
  if (version != kVersion) {
    return incompatible(
        fmt::format("format version {} is unknown to this program, which knows "
                    "version {}",
                    version, kVersion));
  }
  const std::size_t claimed = load<std::uint32_t>(bytes, kHeaderBytesAt);
  if (claimed < kHeaderAlignBytes || claimed % kHeaderAlignBytes != 0) {
    return corrupt(fmt::format("the header claims a size of {} bytes", claimed));
  }
  if (claimed > bytes.size()) {
    return corrupt(
        fmt::format("truncated: a header of {} bytes ({} expected), of which {} are here", claimed,
                    layout.header_bytes(), bytes.size()));
  }
  const auto stored = load<std::uint32_t>(bytes, kCrcAt);
  const auto computed = header_crc(bytes.first(claimed));
  if (stored != computed) {
    return corrupt(
        fmt::format("the header's CRC32C is {:08x}, its bytes give {:08x}", stored, computed));
  }
  return {};
}

Shard load_shard(ConstSegment bytes) {
  return {.tp_rank = load<std::uint16_t>(bytes, kShardAt),
          .tp_size = load<std::uint16_t>(bytes, kShardAt + 2),
          .pp_rank = load<std::uint16_t>(bytes, kShardAt + 4),
          .pp_size = load<std::uint16_t>(bytes, kShardAt + 6)};
}

/// A sound header of something else than what was asked for.
Result<void> check_identity(const ChunkLayout& layout, ConstSegment bytes,
                            const ExpectedChunk& expected) {
  const auto name = load_digest<NamespaceDigest>(bytes, kNamespaceAt);
  if (name != expected.name) {
    return incompatible(
        fmt::format("the object is of namespace {}, not {}", name.hex(), expected.name.hex()));
  }
  const bool same_shape = load<std::uint32_t>(bytes, kHeaderBytesAt) == layout.header_bytes() &&
                          load<std::uint32_t>(bytes, kLayersAt) == layout.layers() &&
                          load<std::uint32_t>(bytes, kUnitsAt) == layout.units() &&
                          load<std::uint32_t>(bytes, kUnitTokensAt) == layout.unit_tokens() &&
                          load<std::uint32_t>(bytes, kObjectLayoutAt) ==
                              static_cast<std::uint32_t>(layout.object_layout()) &&
                          load<std::uint64_t>(bytes, kObjectBytesAt) == layout.object_bytes(0);
  if (!same_shape) return incompatible("layers, units or sizes differ from the namespace's");
  const Shard shard = load_shard(bytes);
  if (shard != expected.shard) {
    return incompatible(fmt::format("the object is of shard {}, not {}", shard_text(shard),
                                    shard_text(expected.shard)));
  }
  const auto key = load_digest<ChunkKey>(bytes, kChunkKeyAt);
  if (key != expected.key) {
    return incompatible(
        fmt::format("the object holds chunk {}, not {}", key.hex(), expected.key.hex()));
  }
  const auto parent = load_digest<ChunkKey>(bytes, kParentKeyAt);
  if (expected.parent && parent != *expected.parent) {
    return incompatible(
        fmt::format("the chunk follows chunk {}, not {}", parent.hex(), expected.parent->hex()));
  }
  return {};
}

/// What a writer must have got right; the CRC vouches only for what it wrote.
Result<void> check_sums(const ChunkLayout& layout, const ChunkHeader& header) {
  if (!is_valid(header.shard)) return corrupt("the shard's ranks and sizes do not fit together");
  if (header.unit_keys.back().bytes != header.key.bytes) {
    return corrupt("the chunk's key is not the key of its last unit");
  }
  for (std::uint32_t layer = 0; layer < layout.layers(); ++layer) {
    for (std::uint32_t unit = 0; unit < layout.units(); ++unit) {
      if (header.record(layer, unit).stored_bytes == layout.unit_bytes(layer)) continue;
      return corrupt(fmt::format("layer {}, unit {}: {} bytes stored, {} expected", layer, unit,
                                 header.record(layer, unit).stored_bytes,
                                 layout.unit_bytes(layer)));
    }
  }
  return {};
}

}  // namespace

Result<void> encode_header(const ChunkLayout& layout, const ChunkHeader& header, Segment out) {
  if (out.size() != layout.header_bytes()) {
    return unfit(fmt::format("the header has {} bytes, room was given for {}",
                             layout.header_bytes(), out.size()));
  }
  if (header.unit_keys.size() != layout.units() ||
      header.records.size() != std::size_t{layout.units()} * layout.layers()) {
    return unfit("the numbers of unit keys and records do not fit the layout");
  }
  if (auto ok = check_sums(layout, header); !ok) return unfit(ok.error().message);

  std::ranges::fill(out, std::byte{0});
  store(out, kMagicAt, kMagic);
  store(out, kVersionAt, kVersion);
  store(out, kHeaderBytesAt, layout.header_bytes());
  store(out, kLayersAt, layout.layers());
  store(out, kUnitsAt, layout.units());
  store(out, kUnitTokensAt, layout.unit_tokens());
  store(out, kObjectLayoutAt, static_cast<std::uint32_t>(layout.object_layout()));
  store(out, kNamespaceAt, header.name.bytes);
  store(out, kChunkKeyAt, header.key.bytes);
  store(out, kParentKeyAt, header.parent.bytes);
  store(out, kShardAt, header.shard.tp_rank);
  store(out, kShardAt + 2, header.shard.tp_size);
  store(out, kShardAt + 4, header.shard.pp_rank);
  store(out, kShardAt + 6, header.shard.pp_size);
  store(out, kObjectBytesAt, layout.object_bytes(0));
  store(out, kCreatedAt, header.created_unix_ms);
  std::size_t at = kHeaderFixedBytes;
  for (const UnitKey& key : header.unit_keys) {
    store(out, at, key.bytes);
    at += kUnitKeyBytes;
  }
  for (const UnitRecord& record : header.records) {
    store(out, at, record.stored_bytes);
    store(out, at + 4, record.crc32c);
    at += kUnitRecordBytes;
  }
  store(out, kCrcAt, header_crc(out));
  return {};
}

Result<ChunkHeader> decode_header(const ChunkLayout& layout, ConstSegment bytes,
                                  const ExpectedChunk& expected) {
  if (auto ok = check_sound(layout, bytes); !ok) return std::unexpected(std::move(ok).error());
  if (auto ok = check_identity(layout, bytes, expected); !ok) {
    return std::unexpected(std::move(ok).error());
  }
  if (load<std::uint32_t>(bytes, kReservedAt) != 0) return corrupt("reserved bytes are not zero");
  const auto padding = bytes.first(layout.header_bytes()).subspan(used_bytes(layout));
  if (std::ranges::any_of(padding, [](std::byte b) { return b != std::byte{0}; })) {
    return corrupt("the padding of the header is not zero");
  }

  ChunkHeader header;
  header.name = expected.name;
  header.shard = expected.shard;
  header.key = expected.key;
  header.parent = load_digest<ChunkKey>(bytes, kParentKeyAt);
  header.created_unix_ms = load<std::uint64_t>(bytes, kCreatedAt);
  header.unit_keys.resize(layout.units());
  header.records.resize(std::size_t{layout.layers()} * layout.units());
  std::size_t at = kHeaderFixedBytes;
  for (UnitKey& key : header.unit_keys) {
    key = load_digest<UnitKey>(bytes, at);
    at += kUnitKeyBytes;
  }
  for (UnitRecord& record : header.records) {
    record = {.stored_bytes = load<std::uint32_t>(bytes, at),
              .crc32c = load<std::uint32_t>(bytes, at + 4)};
    at += kUnitRecordBytes;
  }
  if (auto ok = check_sums(layout, header); !ok) return std::unexpected(std::move(ok).error());
  return header;
}

Result<void> verify_unit(const ChunkLayout& layout, const ChunkHeader& header, std::uint32_t layer,
                         std::uint32_t unit, ConstSegment stored) {
  const UnitRecord& record = header.record(layer, unit);
  if (stored.size() != layout.unit_bytes(layer)) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("layer {}, unit {}: {} bytes, {} expected", layer, unit, stored.size(),
                            layout.unit_bytes(layer)),
                "verify unit");
  }
  const std::uint32_t computed = digest::crc32c(stored);
  if (computed == record.crc32c) return {};
  return fail(ErrorCode::kCorrupt,
              fmt::format("layer {}, unit {}: CRC32C {:08x} stored, the bytes give {:08x}", layer,
                          unit, record.crc32c, computed),
              "verify unit");
}

}  // namespace objectcache::format
