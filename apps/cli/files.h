#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "objectcache/error.h"
#include "objectcache/namespace_spec.h"
#include "objectcache/types.h"

namespace objectcache::cli {

/// Reads a file of at most `bytes_max` bytes. Errors name the path.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::uint64_t bytes_max);
[[nodiscard]] Result<NamespaceSpec> read_namespace_file(const std::filesystem::path& path);
/// Token ids: a JSON array, or numbers apart by blanks, commas or lines. At most 16 Mi tokens.
[[nodiscard]] Result<std::vector<TokenId>> parse_tokens(std::string_view text);
[[nodiscard]] Result<std::vector<TokenId>> read_tokens_file(const std::filesystem::path& path);

/// A file mapped into memory; unmapped on destruction. Movable.
///
/// An output file is written beside its name and appears under it only on publish(), so that a
/// failed command leaves nothing half-written.
class MappedFile {
 public:
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);
  [[nodiscard]] static Result<MappedFile> create(const std::filesystem::path& path,
                                                 std::uint64_t size_bytes);
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// Read-only unless made by create().
  [[nodiscard]] Segment bytes() const { return {data_, size_}; }
  /// Gives an output file its name.
  [[nodiscard]] Result<void> publish();

 private:
  MappedFile() = default;
  void close() noexcept;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::filesystem::path final_;      ///< Empty for input files.
  std::filesystem::path temporary_;  ///< Empty once published.
};

}  // namespace objectcache::cli
