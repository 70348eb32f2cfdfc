// Headers of chunk objects: any bytes are refused, or are exactly what encoding the result gives.
//
// The first byte of the input chooses how to reach deep code: bit 0: layer objects, bit 1: the
// header's CRC is made right, bit 2: the reader expects whatever identity the bytes claim,
// bit 3: short inputs are filled up with zeros.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "digest/crc32c.h"
#include "format/chunk_header.h"
#include "format/example_namespace.h"

namespace {

using namespace objectcache;          // NOLINT
using namespace objectcache::format;  // NOLINT

void mend_crc(std::vector<std::byte>& bytes) {
  constexpr std::size_t kCrcAt = 156;
  std::uint32_t claimed = 0;
  if (bytes.size() < kHeaderFixedBytes) return;
  std::memcpy(&claimed, bytes.data() + 12, 4);
  if (claimed < kHeaderFixedBytes || claimed > bytes.size()) return;
  std::memset(bytes.data() + kCrcAt, 0, 4);
  const std::uint32_t crc = digest::crc32c(std::span(bytes).first(claimed));
  std::memcpy(bytes.data() + kCrcAt, &crc, 4);
}

ExpectedChunk claimed_identity(const std::vector<std::byte>& bytes) {
  ExpectedChunk expected;
  std::memcpy(expected.name.bytes.data(), bytes.data() + 32, 32);
  std::memcpy(expected.key.bytes.data(), bytes.data() + 64, 32);
  std::memcpy(&expected.shard.tp_rank, bytes.data() + 128, 2);
  std::memcpy(&expected.shard.tp_size, bytes.data() + 130, 2);
  std::memcpy(&expected.shard.pp_rank, bytes.data() + 132, 2);
  std::memcpy(&expected.shard.pp_size, bytes.data() + 134, 2);
  return expected;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const unsigned mode = data[0];
  NamespaceSpec spec = example_namespace();
  if ((mode & 1U) != 0) spec.object_layout = ObjectLayout::kLayer;
  const auto layout = ChunkLayout::create(spec);
  if (!layout) std::abort();

  const auto input = std::as_bytes(std::span(data, size).subspan(1));
  std::vector<std::byte> bytes(input.begin(), input.end());
  if ((mode & 8U) != 0 && bytes.size() < layout->header_bytes()) {
    bytes.resize(layout->header_bytes());
  }
  if ((mode & 2U) != 0) mend_crc(bytes);
  ExpectedChunk expected;
  if ((mode & 4U) != 0 && bytes.size() >= kHeaderFixedBytes) expected = claimed_identity(bytes);

  const auto header = decode_header(*layout, bytes, expected);
  if (!header) {
    const ErrorCode code = header.error().code;
    if (code != ErrorCode::kCorrupt && code != ErrorCode::kIncompatible) std::abort();
    return 0;
  }
  std::vector<std::byte> again(layout->header_bytes());
  if (!encode_header(*layout, *header, again)) std::abort();
  if (std::memcmp(again.data(), bytes.data(), again.size()) != 0) std::abort();
  return 0;
}
