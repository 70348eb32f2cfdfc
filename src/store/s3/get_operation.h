#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "store/s3/s3_operation.h"

namespace objectcache::store_s3 {

/// A range of one version of one object, read into the caller's segments.
///
/// Attempts read straight into the segments, each from the byte where the one before broke off and
/// never before it has been closed. A hedge, a second request while the first has no answer yet,
/// reads into a buffer of its own. Whichever has its head first goes on; if it is the hedge, the
/// first request is closed, and only then are bytes copied from the buffer.
///
/// Threads: owner thread of the lane's loop.
class GetOperation final : public S3Operation {
 public:
  /// Requires: `request` is well-formed (request_checks). `done` comes exactly once, later.
  static std::shared_ptr<GetOperation> begin(Lane& lane, store::GetRequest request,
                                             store::GetCompletion done);
  void grant(std::uint64_t bytes) override;

  http::BodyPlan on_head(Attempt& attempt, const http::ResponseHead& head) override;
  void on_body(Attempt& attempt, std::uint64_t bytes) override;

 protected:
  void try_once() override;
  void on_attempt_end(Attempt& attempt, AttemptEnd end) override;
  void finish(std::optional<Error> error) override;
  void on_decided() override;

 private:
  struct Hedge {
    std::shared_ptr<Attempt> attempt;  // null once it has ended
    std::unique_ptr<std::byte[]> buffer;
    std::uint64_t from = 0;    // delivered_ when it was sent: what buffer[0] is
    std::uint64_t length = 0;  // of the buffer
    std::uint64_t received = 0;
    bool leads = false;    // its bytes are the ones that will be delivered
    bool closing = false;  // the first request was quicker after all
  };
  struct Pending {
    std::shared_ptr<Attempt> from;  // null: none
    AttemptEnd end;
  };

  GetOperation(Lane& lane, Subject subject, store::GetRequest request, store::GetCompletion done)
      : S3Operation(lane, std::move(subject)),
        request_(std::move(request)),
        done_(std::move(done)),
        version_(request_.version),
        granted_(request_.grant_bytes) {}

  [[nodiscard]] AttemptRequest attempt_request() const;
  [[nodiscard]] std::vector<Segment> rest_of_destination() const;
  /// Whether the body that comes with `head` is the wanted one; else sets found_ or refuses it.
  [[nodiscard]] bool accept_body(Attempt& attempt, const http::ResponseHead& head);
  void settle(store::GetOutcome outcome);
  void deliver(std::uint64_t bytes);
  void fail_attempt(Attempt& attempt, AttemptEnd end);

  void arm_hedge();
  void start_hedge();
  void on_hedge_end(AttemptEnd end);
  /// Brings what the hedge has received into the destination, once nothing else writes there.
  void copy_from_hedge();
  void give_budget_back();

  store::GetRequest request_;
  store::GetCompletion done_;
  std::optional<store::ObjectVersion> version_;  // asked for, or of the first answer
  std::uint64_t object_bytes_ = 0;
  std::uint64_t delivered_ = 0;  // final bytes of the destination
  std::uint64_t granted_ = 0;    // in all
  store::GetOutcome outcome_ = store::GetOutcome::kOk;

  std::shared_ptr<Attempt> main_;           // reads into the destination; null once it has ended
  std::uint64_t main_from_ = 0;             // delivered_ when it was sent
  Pending pending_;                         // a failure that waits for the end of the other request
  std::optional<store::GetOutcome> found_;  // what a head has shown; told when its attempt ends
  TimerId hedge_timer_ = TimerId::kNone;
  bool hedged_ = false;  // at most one hedge an operation
  Hedge hedge_;
};

}  // namespace objectcache::store_s3
