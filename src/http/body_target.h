#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "http/client.h"
#include "http/response_parser.h"

namespace objectcache::http {

/// Where the body of one answer goes: carries out a BodyPlan and checks the size of the body
/// against what was announced. Bytes either land in the memory of next() without a copy, or are
/// copied by put() where they came with the head or are encoded. Pure.
///
/// Threads: one.
class BodyTarget {
 public:
  enum class Verdict : std::uint8_t {
    kReadOn,     ///< More may come.
    kCloseHere,  ///< The plan wants no more: the exchange is over, the connection not reusable.
  };
  /// Errors: kCorrupt (segments of another size than announced), kLimitExceeded (kCollect).
  [[nodiscard]] Result<Verdict> start(BodyPlan plan, BodyFraming framing,
                                      std::optional<std::uint64_t> content_length);

  /// Bytes still due. Empty: not known (chunked, until close).
  [[nodiscard]] std::optional<std::uint64_t> remaining() const;
  [[nodiscard]] std::uint64_t placed() const { return placed_; }
  /// True where the caller's own memory is filled, so that it is told of progress.
  [[nodiscard]] bool fills_segments() const { return plan_.kind == BodyPlan::Kind::kSegments; }

  struct Space {
    std::size_t buffers = 0;  ///< Of `out` that are set.
    std::size_t bytes = 0;    ///< Their sum, at most `limit`.
  };
  /// The memory that the next bytes belong in. Requires: remaining() is known and > 0, limit > 0.
  [[nodiscard]] Space next(std::span<iovec> out, std::uint64_t limit);
  /// That many bytes of it are filled.
  void advance(std::size_t bytes);
  /// Copies. Errors: kCorrupt (longer than announced), kLimitExceeded (kCollect).
  [[nodiscard]] Result<Verdict> put(std::span<const std::byte> data);

  /// The body has ended by its framing: the collected body, or kCorrupt if bytes are missing.
  [[nodiscard]] Result<std::string> finish();
  /// From now on the rest is dropped, nothing of the caller is touched. Requires: remaining()
  /// known.
  void detach();

 private:
  BodyPlan plan_;
  std::optional<std::uint64_t> expected_;
  std::uint64_t placed_ = 0;
  std::size_t segment_ = 0;         ///< The next byte goes to plan_.segments[segment_]...
  std::size_t segment_offset_ = 0;  ///< ...there.
  std::string collected_;
  std::unique_ptr<std::byte[]> scratch_;  ///< For what is dropped; kept for later answers.
};

}  // namespace objectcache::http
