#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/object_store.h"

namespace objectcache::stream {

/// Objects behind one modelled link, for tests: each read has its first byte after a fixed time;
/// then all reads that are granted bytes share the link, a piece each in turn. Nothing else costs
/// time. What is not granted does not use the link.
///
/// Threads: one loop.
class FakeLinkStore final : public store::ObjectStore {
 public:
  struct Options {
    double bytes_per_s = 1e8;
    Duration first_byte = std::chrono::milliseconds(1);
    std::uint64_t piece_bytes = 4096;
  };
  explicit FakeLinkStore(const Options& options) : options_(options) {}
  ~FakeLinkStore() override;

  std::map<std::string, std::vector<std::byte>> objects;
  /// How long the link carried bytes.
  [[nodiscard]] Duration busy() const { return busy_; }

  store::OperationHandle get(EventLoop& loop, store::GetRequest request,
                             store::GetCompletion done) override;
  store::OperationHandle put(EventLoop&, store::PutRequest, store::PutCompletion) override;
  store::OperationHandle head(EventLoop&, store::ObjectKey, TimePoint,
                              store::HeadCompletion) override;
  store::OperationHandle list(EventLoop&, store::ListRequest, store::ListCompletion) override;
  store::OperationHandle remove(EventLoop&, store::ObjectKey, TimePoint,
                                store::RemoveCompletion) override;
  store::OperationHandle remove_many(EventLoop&, std::vector<store::ObjectKey>, TimePoint,
                                     store::RemoveManyCompletion) override;
  [[nodiscard]] const store::StoreTraits& traits() const override { return traits_; }

 private:
  class Read;
  void serve(EventLoop& loop);

  const Options options_;
  store::StoreTraits traits_{.url = "fake:link"};
  std::deque<std::shared_ptr<Read>> ready_;  // Have their first byte and granted bytes left.
  bool serving_ = false;
  Duration busy_{};
};

}  // namespace objectcache::stream
