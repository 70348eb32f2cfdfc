#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "digest/sha256.h"
#include "store/object_store.h"
#include "store/s3/call.h"
#include "store/s3/put_probe.h"

namespace objectcache::store_s3 {

/// One PUT: hash of the body (in slices, so that the loop goes on), where it is conditional the
/// question whether the store honours that, then the request; if its answer was lost, a look at
/// what is there.
///
/// Threads: owner thread of the lane's loop.
class PutOperation final : public store::Operation,
                           public std::enable_shared_from_this<PutOperation> {
 public:
  /// Requires: `request` is well-formed. `done` comes exactly once, later.
  static std::shared_ptr<PutOperation> begin(Lane& lane, store::PutRequest request,
                                             store::PutCompletion done);
  void cancel() override;

 private:
  PutOperation(Lane& lane, store::PutRequest request, store::PutCompletion done)
      : lane_(lane), request_(std::move(request)), done_(std::move(done)) {}

  void start();
  void next_step();
  void hash_slice();
  void ask_condition();
  void on_condition(Result<PutCondition::State> state);
  void look_first();
  void send(bool conditional);
  void on_put(Result<CallAnswer> answer);
  void compare_with_ours();
  void finish(Result<store::PutAnswer> result);
  void finish_later(ErrorCode code, std::string message);
  [[nodiscard]] Call::Request call_request(Verb verb, std::string method) const;
  [[nodiscard]] bool must_hash() const;

  Lane& lane_;
  store::PutRequest request_;
  store::PutCompletion done_;
  std::uint64_t body_bytes_ = 0;
  std::string payload_hash_;
  digest::Sha256 hash_;
  std::size_t hash_segment_ = 0;
  std::size_t hash_offset_ = 0;
  std::shared_ptr<Call> call_;       // the step that runs, if it is a request
  std::shared_ptr<PutProbe> probe_;  // or this
  TimerId deadline_timer_ = TimerId::kNone;
  bool cancelled_ = false;
  bool decided_ = false;  // done_ was called or is on its way
};

}  // namespace objectcache::store_s3
