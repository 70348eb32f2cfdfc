#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "objectcache/error.h"

namespace objectcache::cli {

/// One tensor of a safetensors file. Offsets count from the start of the data, not of the file.
struct Tensor {
  std::string name;
  std::string dtype;                 ///< As the file spells it: "BF16", "F32"...
  std::vector<std::uint64_t> shape;  ///< Row-major; at most 8 dimensions.
  std::uint64_t begin = 0;           ///< Inclusive.
  std::uint64_t end = 0;             ///< Exclusive.

  [[nodiscard]] std::uint64_t size_bytes() const { return end - begin; }
};

/// The head of a safetensors file: 8 bytes of length, then JSON. Metadata is checked and dropped.
struct SafetensorsHead {
  std::vector<Tensor> tensors;    ///< Ascending by `begin`.
  std::uint64_t data_offset = 0;  ///< Where the data start in the file.
};

inline constexpr std::uint64_t kSafetensorsHeadBytesMax = 16U << 20;
inline constexpr std::size_t kTensorsMax = 16384;

/// Bytes of one element; 0: not a dtype of the format with whole bytes.
[[nodiscard]] std::uint64_t dtype_bytes(std::string_view dtype);

/// How many bytes of the file the head takes, from its first 8 bytes. kInvalidArgument if the
/// length they state does not fit into the file or our limit.
[[nodiscard]] Result<std::uint64_t> safetensors_head_bytes(std::span<const std::byte, 8> first,
                                                           std::uint64_t file_bytes);

/// Reads a head of foreign origin: every offset, shape and size is checked against the file and
/// each other; unknown keys and repeated names are refused; no holes, no overlaps. Bounded work.
/// `head` holds exactly safetensors_head_bytes() bytes.
[[nodiscard]] Result<SafetensorsHead> parse_safetensors_head(std::span<const std::byte> head,
                                                             std::uint64_t file_bytes);

/// The head that the reference library writes for these tensors in this order (names need no
/// escaping), padded to a multiple of 8 bytes. Offsets are taken as given.
[[nodiscard]] std::string make_safetensors_head(const std::vector<Tensor>& tensors);

}  // namespace objectcache::cli
