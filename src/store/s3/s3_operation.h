#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/object_store.h"
#include "store/s3/attempt.h"
#include "store/s3/lane.h"
#include "store/s3/retry_policy.h"

namespace objectcache::store_s3 {

/// One logical request: attempts, one after the other, until one brings the answer, the policy
/// gives up, the deadline comes or the caller cancels. Whatever happens, finish() is called exactly
/// once, after every attempt has ended.
///
/// Threads: owner thread of the lane's loop. Keeps itself alive until finish() returns.
class S3Operation : public store::Operation,
                    public AttemptObserver,
                    public std::enable_shared_from_this<S3Operation> {
 public:
  struct Subject {
    Verb verb = Verb::kGet;
    std::string action;  ///< For errors: "GET", "PUT"...
    std::string key;     ///< For errors: an object's or the bucket's URL.
    TimePoint deadline;
    bool internal = false;  ///< A step of another operation, which counts its own failure.
  };

  /// To be called once, right after construction.
  void start();
  void cancel() override;
  void on_end(Attempt& attempt, AttemptEnd end) final;

 protected:
  S3Operation(Lane& lane, Subject subject)
      : lane_(lane), subject_(std::move(subject)), retry_(lane.core().options.retry) {}

  /// Starts the next attempt by launch(). Also called for each retry.
  virtual void try_once() = 0;
  /// An attempt has ended, and the operation has not been decided yet. Calls decide() or
  /// retry_or_fail(), unless another attempt still runs.
  virtual void on_attempt_end(Attempt& attempt, AttemptEnd end) = 0;
  /// Tells the caller. `error` is empty where the operation succeeded.
  virtual void finish(std::optional<Error> error) = 0;

  std::shared_ptr<Attempt> launch(AttemptRequest request);
  /// Ends the operation: cancels what runs, waits for it, then finish(). The first call counts.
  void decide(std::optional<Error> error);
  /// Mends what the answer shows can be mended (region, clock, credentials) or asks the policy.
  void retry_or_fail(AttemptEnd end, bool progressed, const Attempt& attempt);

  [[nodiscard]] bool decided() const { return decided_; }
  [[nodiscard]] TimePoint deadline() const { return subject_.deadline; }
  [[nodiscard]] Lane& lane() const { return lane_; }
  [[nodiscard]] S3Core& core() const { return lane_.core(); }
  [[nodiscard]] std::uint32_t failures() const { return retry_.failures(); }
  /// The endpoint that failed last: the next attempt prefers another.
  [[nodiscard]] std::optional<std::size_t> avoid() const { return avoid_; }
  [[nodiscard]] Error named(Error error) const;
  /// Timers of a subclass end here.
  virtual void on_decided() {}

 private:
  [[nodiscard]] bool mend(const AttemptEnd& end, const Attempt& attempt);
  void explain(Error& error) const;
  [[nodiscard]] Error deadline_error() const;
  void maybe_finish();
  void retry_at(TimePoint when);

  Lane& lane_;
  const Subject subject_;
  RetryPolicy retry_;
  std::vector<std::shared_ptr<Attempt>> live_;
  TimerId deadline_timer_ = TimerId::kNone;
  TimerId retry_timer_ = TimerId::kNone;
  std::optional<Error> last_failure_;
  std::optional<std::size_t> avoid_;
  bool region_mended_ = false;
  bool clock_mended_ = false;
  bool credentials_mended_ = false;
  bool decided_ = false;
  bool inside_call_ = false;  // of the caller's: finish() must come later
  bool finish_posted_ = false;
  std::optional<Error> outcome_;
};

}  // namespace objectcache::store_s3
