#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/client.h"
#include "s3/error_map.h"
#include "store/s3/lane.h"

namespace objectcache::store_s3 {

/// How an attempt ended.
struct AttemptEnd {
  http::ResponseHead head;     ///< status 0: there was no answer.
  std::string body;            ///< What was collected.
  std::optional<Error> error;  ///< Set unless the answer is one that was asked for.
  /// What an unhappy answer means; its `error` is moved into the one above.
  std::optional<s3::FailureMeaning> meaning;
  bool final = false;  ///< Trying again would not help, whatever the code says.

  [[nodiscard]] s3::FailureKind kind() const {
    return meaning ? meaning->kind : s3::FailureKind::kError;
  }
};

class Attempt;

/// The operation that an attempt belongs to. Owner thread.
class AttemptObserver {
 public:
  virtual ~AttemptObserver() = default;
  /// An answer of 2xx or of a status in AttemptRequest::accepted. Other answers are collected and
  /// made an error by the attempt itself.
  virtual http::BodyPlan on_head(Attempt& attempt, const http::ResponseHead& head) = 0;
  virtual void on_body(Attempt& attempt, std::uint64_t bytes) = 0;
  /// Exactly once and last; never from inside start() or cancel(). Nothing of the attempt touches
  /// memory of the operation any more.
  virtual void on_end(Attempt& attempt, AttemptEnd end) = 0;
};

struct AttemptRequest {
  RequestSpec spec;
  std::vector<int> accepted;  ///< Statuses that are answers, beside 2xx.
  TimePoint deadline;
  std::uint64_t grant_bytes = UINT64_MAX;
  std::optional<std::size_t> avoid = std::nullopt;  ///< An endpoint that failed just now.
};

/// One exchange with the store and all that has to happen before and after it: credentials, request
/// rate, breaker, signature; then counting, and making an error of whatever is no answer.
///
/// Threads: owner thread of the lane's loop. Keeps itself and its observer alive until on_end().
class Attempt final : public http::ResponseSink, public std::enable_shared_from_this<Attempt> {
 public:
  [[nodiscard]] static std::shared_ptr<Attempt> start(Lane& lane, AttemptRequest request,
                                                      std::shared_ptr<AttemptObserver> observer);

  /// on_end() follows, with kCancelled unless it ended before. Harmless when repeated.
  void cancel();
  void grant(std::uint64_t bytes);
  /// From inside on_head(), which then returns a plan of kAbort: how the attempt will end.
  void refuse(Error error) { refusal_ = std::move(error); }

  [[nodiscard]] bool has_head() const { return head_.status != 0; }
  /// Set once the request was sent.
  [[nodiscard]] std::optional<std::size_t> endpoint() const;
  [[nodiscard]] const CredentialsPtr& credentials() const { return credentials_; }

  http::BodyPlan on_head(const http::ResponseHead& head) override;
  void on_body(std::uint64_t bytes) override;
  void on_end(Result<std::string> result) override;

 private:
  Attempt(Lane& lane, AttemptRequest request, std::shared_ptr<AttemptObserver> observer)
      : lane_(lane), request_(std::move(request)), observer_(std::move(observer)) {}

  void begin();
  void with_credentials(Result<CredentialsPtr> credentials);
  void send();
  void end_later(Error error, bool final);
  void finish(AttemptEnd end);
  [[nodiscard]] bool accepts(int status) const;
  [[nodiscard]] Health judge_connection(Error& error) const;
  [[nodiscard]] s3::FailureMeaning judge_answer(std::string_view body) const;

  Lane& lane_;
  AttemptRequest request_;
  std::shared_ptr<AttemptObserver> observer_;
  CredentialsPtr credentials_;
  std::shared_ptr<http::Exchange> exchange_;  // null until sent
  std::optional<Lane::Route> route_;          // as long as it counts as in flight
  std::optional<std::size_t> endpoint_;
  TimerId timer_ = TimerId::kNone;  // waits for its turn in the request rate
  TimePoint sent_at_{};
  TimePoint exchange_deadline_{};
  http::ResponseHead head_;
  std::optional<Error> refusal_;
  bool accepted_ = false;    // the observer heard of the head
  bool progressed_ = false;  // some of the body came
  bool ended_ = false;       // on_end() was called or is on its way
};

}  // namespace objectcache::store_s3
