#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "store/object_store.h"

namespace objectcache::store {

/// Any store behind a modelled link: every call waits for a first-byte time, and bodies share a
/// bandwidth, one per direction. It shows what a slower store would do (the demo), and gives tests
/// a network on the virtual clock. It measures nothing: the wrapped store's own time comes on top.
///
/// The model: the link sends pieces one after the other; running transfers take turns. A read is
/// steered through the wrapped store's grants, so bytes arrive in the caller's memory only when the
/// link would have brought them.
///
/// Threads: any number of loops, see ObjectStore; their clocks must be one.
/// Lifetimes: the wrapped store must outlive this, and this its operations.
class ModelledLinkStore final : public ObjectStore {
 public:
  struct Options {
    Duration first_byte{};             ///< From a call to the first byte of its answer.
    double read_bytes_per_second = 0;  ///< Of all reads together; 0: unlimited.
    double write_bytes_per_second = 0;
    std::size_t piece_bytes = std::size_t{64} << 10;  ///< The turn of one transfer; > 0.
  };

  ModelledLinkStore(ObjectStore& wrapped, Options options);
  ~ModelledLinkStore() override;

  OperationHandle get(EventLoop& loop, GetRequest request, GetCompletion done) override;
  OperationHandle put(EventLoop& loop, PutRequest request, PutCompletion done) override;
  OperationHandle head(EventLoop& loop, ObjectKey key, TimePoint deadline,
                       HeadCompletion done) override;
  OperationHandle list(EventLoop& loop, ListRequest request, ListCompletion done) override;
  OperationHandle remove(EventLoop& loop, ObjectKey key, TimePoint deadline,
                         RemoveCompletion done) override;
  OperationHandle remove_many(EventLoop& loop, std::vector<ObjectKey> keys, TimePoint deadline,
                              RemoveManyCompletion done) override;
  [[nodiscard]] const StoreTraits& traits() const override { return wrapped_.traits(); }

 private:
  class Link;
  class ReadCall;
  class WriteCall;

  ObjectStore& wrapped_;
  const Options options_;
  const std::shared_ptr<Link> read_link_;
  const std::shared_ptr<Link> write_link_;
};

}  // namespace objectcache::store
