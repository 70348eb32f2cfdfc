#include "cache/chunk_buffer_pool.h"

#include <new>
#include <utility>

namespace objectcache::cache {
namespace {

std::byte* allocate(std::size_t size) {
  return static_cast<std::byte*>(
      ::operator new(size, std::align_val_t{ChunkBufferPool::kAlignBytes}, std::nothrow));
}
void release(std::byte* data) {
  ::operator delete(data, std::align_val_t{ChunkBufferPool::kAlignBytes});
}

}  // namespace

ChunkBufferPool::Buffer::~Buffer() { pool_->give_back(data_, size_); }

ChunkBufferPool::~ChunkBufferPool() {
  for (const Kept& kept : kept_) release(kept.data);
}

std::shared_ptr<ChunkBufferPool::Buffer> ChunkBufferPool::acquire(std::size_t size_bytes) {
  std::byte* data = nullptr;
  std::vector<Kept> surplus;
  {
    const std::scoped_lock lock(mutex_);
    if (size_bytes > bytes_max_ || in_use_ > bytes_max_ - size_bytes) return nullptr;
    for (std::size_t i = kept_.size(); i-- > 0;) {
      if (kept_[i].size != size_bytes) continue;
      data = kept_[i].data;
      kept_bytes_ -= size_bytes;
      kept_[i] = kept_.back();
      kept_.pop_back();
      break;
    }
    in_use_ += size_bytes;
    while (in_use_ + kept_bytes_ > bytes_max_) {
      kept_bytes_ -= kept_.back().size;
      surplus.push_back(kept_.back());
      kept_.pop_back();
    }
  }
  for (const Kept& kept : surplus) release(kept.data);
  if (data == nullptr) data = allocate(size_bytes);
  if (data == nullptr) {
    const std::scoped_lock lock(mutex_);
    in_use_ -= size_bytes;
    return nullptr;
  }
  return std::shared_ptr<Buffer>(new Buffer(shared_from_this(), data, size_bytes));
}

void ChunkBufferPool::give_back(std::byte* data, std::size_t size) {
  const std::scoped_lock lock(mutex_);
  in_use_ -= size;
  kept_bytes_ += size;
  kept_.push_back({data, size});
}

std::uint64_t ChunkBufferPool::bytes_in_use() const {
  const std::scoped_lock lock(mutex_);
  return in_use_;
}

std::uint64_t ChunkBufferPool::bytes_held() const {
  const std::scoped_lock lock(mutex_);
  return in_use_ + kept_bytes_;
}

}  // namespace objectcache::cache
