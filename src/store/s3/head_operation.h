#pragma once

#include <memory>
#include <string>

#include "store/object_store.h"
#include "store/s3/call.h"

namespace objectcache::store_s3 {

/// One HEAD. Its 404 has no body, so it cannot tell a missing object from a missing bucket; as long
/// as nothing has shown that the bucket exists, the operation asks for the bucket as well: a typing
/// error must not look like an empty cache.
///
/// Threads: owner thread of the lane's loop.
class HeadOperation final : public store::Operation,
                            public std::enable_shared_from_this<HeadOperation> {
 public:
  static std::shared_ptr<HeadOperation> begin(Lane& lane, store::ObjectKey key, TimePoint deadline,
                                              store::HeadCompletion done);
  void cancel() override {
    if (call_) call_->cancel();
  }

 private:
  HeadOperation(Lane& lane, store::ObjectKey key, TimePoint deadline, store::HeadCompletion done)
      : lane_(lane), key_(std::move(key)), deadline_(deadline), done_(std::move(done)) {}

  void ask_object();
  void ask_bucket();
  void finish(Result<std::optional<store::ObjectInfo>> result);

  Lane& lane_;
  const store::ObjectKey key_;
  const TimePoint deadline_;
  store::HeadCompletion done_;
  std::shared_ptr<Call> call_;
};

}  // namespace objectcache::store_s3
