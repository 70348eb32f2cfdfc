#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "store/object_store.h"
#include "store/s3/connector.h"
#include "store/s3/credential_source.h"
#include "store/s3/put_condition.h"
#include "store/s3/s3_options.h"
#include "store/s3/s3_stats.h"

namespace objectcache::store_s3 {

class Lane;
class S3Core;

/// Objects in an S3 bucket, below a prefix. What a store promises is in store/object_store.h; what
/// this one does about failures is in README.md.
///
/// Each loop that calls it gets its own connections (a lane), made at the first call.
///
/// Threads: any, each call on its loop's.
/// Lifetimes: outlives its operations. Every loop that has called it outlives it: its end closes
/// the connections on their loops and waits for that, so a loop must run then, or have been stopped
/// by this thread.
class S3Store final : public store::ObjectStore {
 public:
  struct Ports {
    std::shared_ptr<const WallClock> wall;
    std::shared_ptr<Connector> connector;
    std::shared_ptr<CredentialSource> credentials;
    std::uint64_t seed = 0;  ///< Of jitter and probe names.
  };
  /// kInvalidArgument: no bucket, no endpoint, a bucket name that the style does not allow...
  /// Does not talk to the store.
  [[nodiscard]] static Result<std::unique_ptr<S3Store>> create(S3Options options, Ports ports);
  ~S3Store() override;

  store::OperationHandle get(EventLoop& loop, store::GetRequest request,
                             store::GetCompletion done) override;
  store::OperationHandle put(EventLoop& loop, store::PutRequest request,
                             store::PutCompletion done) override;
  store::OperationHandle head(EventLoop& loop, store::ObjectKey key, TimePoint deadline,
                              store::HeadCompletion done) override;
  store::OperationHandle list(EventLoop& loop, store::ListRequest request,
                              store::ListCompletion done) override;
  store::OperationHandle remove(EventLoop& loop, store::ObjectKey key, TimePoint deadline,
                                store::RemoveCompletion done) override;
  store::OperationHandle remove_many(EventLoop& loop, std::vector<store::ObjectKey> keys,
                                     TimePoint deadline, store::RemoveManyCompletion done) override;
  /// put_if_absent_is_atomic is false until probe() or the first conditional PUT has shown it.
  [[nodiscard]] const store::StoreTraits& traits() const override;

  /// Finds out now, by writing and deleting a small object, whether the server honours conditional
  /// PUT; else the first one does. traits() knows it from then on.
  store::OperationHandle probe(EventLoop& loop, TimePoint deadline,
                               std::move_only_function<void(Result<PutCondition::State>)> done);

  [[nodiscard]] std::optional<store::StoreFigures> figures() const override;
  /// Any thread. `now` is that of any of its loops.
  [[nodiscard]] S3Stats stats(TimePoint now) const;
  [[nodiscard]] const S3Options& options() const;

 private:
  explicit S3Store(std::unique_ptr<S3Core> core);
  /// The loop's lane; makes it at the first call.
  [[nodiscard]] Result<Lane*> lane_of(EventLoop& loop);
  template <class Done>
  store::OperationHandle refuse(EventLoop& loop, std::string_view action, const std::string& key,
                                Error error, Done done);

  struct LoopLane {
    EventLoop* loop;
    std::unique_ptr<Lane> lane;
  };
  const std::unique_ptr<S3Core> core_;
  store::StoreTraits traits_racing_;  // of a store that may replace what another writer put
  store::StoreTraits traits_atomic_;
  std::mutex mutex_;  // guards lanes_; a lane itself belongs to its loop
  std::vector<LoopLane> lanes_;
};

}  // namespace objectcache::store_s3
