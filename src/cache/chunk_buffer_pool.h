#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "objectcache/types.h"

namespace objectcache::cache {

/// The memory in which chunks are collected and from which they are sent, for the whole process.
///
/// Never waits: what does not fit is refused, and the writer drops it. Buffers are kept for reuse,
/// because touching fresh pages costs about as much as the copy itself; kept ones count and make
/// room when another size is needed.
///
/// Threads: any.   Limits: bytes_max, kept buffers included.   Lifetime: buffers keep the pool's
/// account alive, so they may outlive the pool's owner.
class ChunkBufferPool : public std::enable_shared_from_this<ChunkBufferPool> {
 public:
  static constexpr std::size_t kAlignBytes = 4096;

  /// Memory of one chunk. Returns itself to the pool. The content is whatever was there before.
  class Buffer {
   public:
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }

   private:
    friend class ChunkBufferPool;
    Buffer(std::shared_ptr<ChunkBufferPool> pool, std::byte* data, std::size_t size)
        : pool_(std::move(pool)), data_(data), size_(size) {}
    std::shared_ptr<ChunkBufferPool> pool_;
    std::byte* data_;
    std::size_t size_;
  };

  [[nodiscard]] static std::shared_ptr<ChunkBufferPool> create(std::uint64_t bytes_max) {
    return std::shared_ptr<ChunkBufferPool>(new ChunkBufferPool(bytes_max));
  }
  ~ChunkBufferPool();
  ChunkBufferPool(const ChunkBufferPool&) = delete;
  ChunkBufferPool& operator=(const ChunkBufferPool&) = delete;

  /// Empty when the limit is reached, or when the system has no memory left. Requires size > 0.
  [[nodiscard]] std::shared_ptr<Buffer> acquire(std::size_t size_bytes);

  [[nodiscard]] std::uint64_t bytes_in_use() const;
  [[nodiscard]] std::uint64_t bytes_held() const;  ///< In use and kept.
  [[nodiscard]] std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  struct Kept {
    std::byte* data;
    std::size_t size;
  };

  explicit ChunkBufferPool(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  void give_back(std::byte* data, std::size_t size);

  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;
  std::uint64_t in_use_ = 0;
  std::uint64_t kept_bytes_ = 0;
  std::vector<Kept> kept_;
};

}  // namespace objectcache::cache
