#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "store/object_store.h"

namespace objectcache::store {

/// Objects in the memory of this process, for tests, demos and as a fast local tier. What lies in
/// it ends with it.
///
/// Threads: any number of loops at once, see ObjectStore. Copies run on the loop's thread, in
/// pieces, so that other tasks of the loop get their turn.
/// Limits: Options; beyond them a PUT fails with kOutOfSpace. Bytes of running PUTs count.
class MemoryStore final : public ObjectStore {
 public:
  struct Options {
    std::uint64_t capacity_bytes = UINT64_MAX;  ///< Of the objects' bytes.
    std::size_t objects_max = 10'000'000;
    std::size_t piece_bytes = std::size_t{1} << 20;  ///< Copied at once; > 0.
  };
  struct Usage {
    std::uint64_t bytes = 0;
    std::size_t objects = 0;
  };

  MemoryStore();
  explicit MemoryStore(Options options);
  ~MemoryStore() override;

  OperationHandle get(EventLoop& loop, GetRequest request, GetCompletion done) override;
  OperationHandle put(EventLoop& loop, PutRequest request, PutCompletion done) override;
  OperationHandle head(EventLoop& loop, ObjectKey key, TimePoint deadline,
                       HeadCompletion done) override;
  OperationHandle list(EventLoop& loop, ListRequest request, ListCompletion done) override;
  OperationHandle remove(EventLoop& loop, ObjectKey key, TimePoint deadline,
                         RemoveCompletion done) override;
  OperationHandle remove_many(EventLoop& loop, std::vector<ObjectKey> keys, TimePoint deadline,
                              RemoveManyCompletion done) override;
  [[nodiscard]] const StoreTraits& traits() const override { return traits_; }

  /// Any thread.
  [[nodiscard]] Usage usage() const;

 private:
  struct State;
  StoreTraits traits_;
  std::shared_ptr<State> state_;
};

}  // namespace objectcache::store
