#include "store/s3/put_probe.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "digest/hex.h"
#include "digest/sha256.h"

namespace objectcache::store_s3 {
namespace {

constexpr std::string_view kBody = "objectcache\n";

bool refused(int status) { return status == 412 || status == 409; }

}  // namespace

PutProbe::PutProbe(Lane& lane, TimePoint deadline, Completion done)
    : lane_(lane),
      deadline_(deadline),
      done_(std::move(done)),
      key_(fmt::format(".objectcache-probe-{:016x}", lane.random().next())) {
  static_assert(kBody.size() == std::tuple_size_v<decltype(body_)>);
  std::memcpy(body_.data(), kBody.data(), kBody.size());
}

std::shared_ptr<PutProbe> PutProbe::begin(Lane& lane, TimePoint deadline, Completion done) {
  std::shared_ptr<PutProbe> probe(new PutProbe(lane, deadline, std::move(done)));
  probe->first();
  return probe;
}

void PutProbe::cancel() {
  if (current_) current_->cancel();
}

Call::Request PutProbe::request(std::string method, bool conditional) const {
  Call::Request out;
  const bool put = method == "PUT";
  out.subject = {.verb = put ? Verb::kPut : Verb::kDelete,
                 .action = put ? "PUT (does the store honour If-None-Match?)" : "DELETE",
                 .key = lane_.core().key_url(key_),
                 .deadline = deadline_,
                 .internal = true};
  out.spec = {.verb = out.subject.verb,
              .method = std::move(method),
              .key = lane_.core().full_key(key_),
              .query = {},
              .headers = {},
              .body = {}};
  if (put) {
    out.spec.body = {body_};
    out.spec.payload_hash = digest::hex(digest::sha256(body_));
  }
  if (conditional) {
    out.spec.headers.push_back({"If-None-Match", "*"});
    out.accepted = {409, 412, 501};
  }
  return out;
}

void PutProbe::first() {
  current_ = Call::begin(lane_, request("PUT", true),
                         [self = shared_from_this()](Result<CallAnswer> answer) {
                           if (!answer) return self->fail_with(answer.error());
                           // No one else knows the name: refused, because an attempt whose answer
                           // was lost did it.
                           if (refused(answer->status))
                             return self->clean_up(PutCondition::State::kHonoured);
                           if (answer->status == 501)
                             return self->clean_up(PutCondition::State::kIgnored);
                           self->second();
                         });
}

void PutProbe::second() {
  current_ = Call::begin(lane_, request("PUT", true),
                         [self = shared_from_this()](Result<CallAnswer> answer) {
                           if (!answer) return self->fail_with(answer.error());
                           self->clean_up(refused(answer->status) ? PutCondition::State::kHonoured
                                                                  : PutCondition::State::kIgnored);
                         });
}

void PutProbe::clean_up(PutCondition::State found) {
  current_ = Call::begin(lane_, request("DELETE", false),
                         [self = shared_from_this(), found](const Result<CallAnswer>&) {
                           // Whoever may not delete leaves twelve bytes behind.
                           self->current_.reset();
                           self->done_(found);
                         });
}

void PutProbe::fail_with(const Error& error) {
  current_.reset();
  if (error.code == ErrorCode::kPermissionDenied) {
    done_(PutCondition::State::kUnproven);
  } else {
    done_(std::unexpected(error));
  }
}

}  // namespace objectcache::store_s3
