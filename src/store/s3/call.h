#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/s3/s3_operation.h"

namespace objectcache::store_s3 {

struct CallAnswer {
  int status = 0;
  http::Headers headers;
  std::string body;
  /// An earlier attempt ended without an answer after it was sent: the server may have done it.
  bool maybe_done_before = false;
};

/// A request whose answer is small and is wanted whole: everything but GET.
class Call final : public S3Operation {
 public:
  using Completion = std::move_only_function<void(Result<CallAnswer>)>;
  struct Request {
    Subject subject;
    RequestSpec spec;
    std::vector<int> accepted;  ///< Statuses that are answers, beside 2xx.
    std::uint64_t body_bytes_max = 8ULL << 20;
  };
  /// `done` comes exactly once, later, on the lane's loop.
  static std::shared_ptr<Call> begin(Lane& lane, Request request, Completion done);

  http::BodyPlan on_head(Attempt& attempt, const http::ResponseHead& head) override;
  void on_body(Attempt&, std::uint64_t) override {}

 protected:
  void try_once() override;
  void on_attempt_end(Attempt& attempt, AttemptEnd end) override;
  void finish(std::optional<Error> error) override;

 private:
  Call(Lane& lane, Request request, Completion done)
      : S3Operation(lane, request.subject), request_(std::move(request)), done_(std::move(done)) {}

  Request request_;
  Completion done_;
  CallAnswer answer_;
};

}  // namespace objectcache::store_s3
