#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "store/object_store.h"
#include "store/s3/call.h"

namespace objectcache::store_s3 {

/// One DELETE. `done` comes exactly once, later.
std::shared_ptr<Call> begin_remove(Lane& lane, const store::ObjectKey& key, TimePoint deadline,
                                   store::RemoveCompletion done);

/// Many keys by one DeleteObjects; where the server has no such request, by single DELETEs, of
/// which `kSinglesMax` run at a time.
///
/// Threads: owner thread of the lane's loop.
class RemoveManyOperation final : public store::Operation,
                                  public std::enable_shared_from_this<RemoveManyOperation> {
 public:
  static constexpr std::size_t kSinglesMax = 8;

  /// Requires: 1 to 1,000 keys. `done` comes exactly once, later.
  static std::shared_ptr<RemoveManyOperation> begin(Lane& lane, std::vector<store::ObjectKey> keys,
                                                    TimePoint deadline,
                                                    store::RemoveManyCompletion done);
  void cancel() override;

 private:
  RemoveManyOperation(Lane& lane, std::vector<store::ObjectKey> keys, TimePoint deadline,
                      store::RemoveManyCompletion done)
      : lane_(lane), keys_(std::move(keys)), deadline_(deadline), done_(std::move(done)) {}

  void send_batch();
  void on_batch(Result<CallAnswer> answer);
  void send_singles();
  void on_single(std::size_t index, std::size_t place, Result<void> result);
  void finish(Result<std::vector<store::RemoveFailure>> result);

  Lane& lane_;
  const std::vector<store::ObjectKey> keys_;
  const TimePoint deadline_;
  store::RemoveManyCompletion done_;
  std::string body_;  // of the batch request
  std::vector<std::shared_ptr<Call>> calls_;
  std::size_t next_single_ = 0;
  std::size_t running_ = 0;
  std::optional<Error> abort_;  // no more singles: cancelled or past the deadline
  std::vector<store::RemoveFailure> failures_;
};

}  // namespace objectcache::store_s3
