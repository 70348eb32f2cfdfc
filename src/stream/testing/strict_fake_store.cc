#include "stream/testing/strict_fake_store.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace objectcache::stream {

using store::GetAnswer;
using store::GetOutcome;

class StrictFakeStore::Read final : public store::Operation,
                                    public std::enable_shared_from_this<Read> {
 public:
  Read(StrictFakeStore& store, EventLoop& loop, store::GetRequest request,
       store::GetCompletion done, Script script)
      : store_(store),
        loop_(loop),
        request_(std::move(request)),
        done_(std::move(done)),
        script_(std::move(script)),
        granted_(std::min(request_.grant_bytes, request_.length)) {
    store_.running_max_ = std::max(store_.running_max_, ++store_.running_);
    count_grant(granted_);
  }

  void begin() {
    deadline_ = loop_.run_at(request_.deadline, [self = shared_from_this()] {
      self->deadline_ = TimerId::kNone;
      self->finish(fail(ErrorCode::kDeadlineExceeded, "too late", "GET", self->request_.key.text));
    });
    after(script_.first_byte, [this] { answer(); });
  }

  void cancel() override {
    if (finished_ || cancelled_) return;
    cancelled_ = true;
    // It may still write until it completes.
    scribble();
    after(script_.cancel_time / 2, [this] { scribble(); });
    after(script_.cancel_time, [this] {
      scribble();
      finish(fail(ErrorCode::kCancelled, "cancelled", "GET", request_.key.text));
    });
  }

  void grant(std::uint64_t bytes) override {
    if (finished_) return;
    const std::uint64_t more = std::min(bytes, request_.length - granted_);
    granted_ += more;
    count_grant(more);
    if (held_) {
      held_ = false;
      after(script_.piece_time, [this] { piece(); });
    }
  }

 private:
  template <class Task>
  void after(Duration delay, Task task) {
    loop_.run_at(loop_.now() + delay, [self = shared_from_this(), task]() mutable {
      if (!self->finished_) task();
    });
  }
  void count_grant(std::uint64_t bytes) {
    store_.granted_open_ += bytes;
    store_.granted_open_max_ = std::max(store_.granted_open_max_, store_.granted_open_);
  }

  void answer() {
    if (cancelled_) return;
    const auto found = store_.objects.find(request_.key.text);
    const Fault fault = script_.fault;
    if (fault != Fault::kNone) ++store_.faults_;
    if (fault == Fault::kMissing || found == store_.objects.end()) {
      return finish(GetAnswer{.outcome = GetOutcome::kMissing});
    }
    version_ = found->second.version;
    if (fault == Fault::kOtherVersion) version_ += "-other";
    if (fault == Fault::kVersionChanged ||
        (request_.version && request_.version->text != version_)) {
      return finish(GetAnswer{.outcome = GetOutcome::kVersionChanged});
    }
    const auto& whole = found->second.bytes;
    object_bytes_ = whole.size();
    if (fault == Fault::kOutOfRange || request_.offset + request_.length > whole.size()) {
      return finish(GetAnswer{.outcome = GetOutcome::kOutOfRange});
    }
    if (fault == Fault::kCorruptError) {
      return finish(fail(ErrorCode::kCorrupt, "torn", "GET", request_.key.text));
    }
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(request_.offset);
    body_.assign(first, first + static_cast<std::ptrdiff_t>(request_.length));
    if (fault == Fault::kFlippedBit) {
      body_[script_.fault_at % body_.size()] ^= std::byte{4};
    } else if (fault == Fault::kGarbage) {
      for (auto& b : body_) b = static_cast<std::byte>(store_.random_.next());
    } else if (fault == Fault::kOtherBody) {
      const auto& other = store_.objects.at(script_.other).bytes;
      std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(request_.offset), body_.size(),
                  body_.begin());
    }
    piece();
  }

  void piece() {
    if (cancelled_) return;
    const std::uint64_t end = std::min({request_.length, granted_, sent_ + script_.piece_bytes});
    const bool breaks = script_.fault == Fault::kError || script_.fault == Fault::kStall;
    if (breaks && end > script_.fault_at % request_.length) {
      scribble();
      if (script_.fault == Fault::kStall) return;
      return finish(fail(ErrorCode::kUnavailable, "503", "GET", request_.key.text));
    }
    if (end == sent_) {
      held_ = true;
      return;
    }
    copy(end);
    store_.granted_open_ -= end - sent_;
    sent_ = end;
    scribble();
    if (script_.report_progress || (sent_ == granted_ && sent_ < request_.length)) {
      request_.on_bytes(sent_, {version_});
      if (cancelled_ || finished_) return;
    }
    if (sent_ == request_.length) {
      after(script_.completion, [this] {
        if (cancelled_) return;
        finish(GetAnswer{
            .outcome = GetOutcome::kOk, .version = {version_}, .object_bytes = object_bytes_});
      });
    } else {
      after(script_.piece_time, [this] { piece(); });
    }
  }

  /// Writes bytes [sent_, end) of the body to their place.
  void copy(std::uint64_t end) {
    for_each_byte_run(sent_, end, [this](std::uint64_t at, Segment memory) {
      std::copy_n(body_.begin() + static_cast<std::ptrdiff_t>(at), memory.size(), memory.begin());
    });
  }
  /// Nonsense into a part that is not reported yet: it belongs to this operation.
  void scribble() {
    if (sent_ >= request_.length) return;
    const std::uint64_t from = sent_ + store_.random_.below(request_.length - sent_);
    const std::uint64_t to = std::min(request_.length, from + 1 + store_.random_.below(97));
    for_each_byte_run(from, to, [this](std::uint64_t, Segment memory) {
      for (auto& b : memory) b = static_cast<std::byte>(store_.random_.next());
    });
  }
  template <class F>
  void for_each_byte_run(std::uint64_t from, std::uint64_t to, F f) {
    std::uint64_t start = 0;
    for (const Segment segment : request_.destination) {
      const std::uint64_t end = start + segment.size();
      const std::uint64_t a = std::max(from, start);
      const std::uint64_t b = std::min(to, end);
      if (a < b) f(a, segment.subspan(a - start, b - a));
      start = end;
    }
  }

  void finish(Result<GetAnswer> answer) {
    if (finished_) return;
    finished_ = true;
    loop_.cancel_timer(deadline_);
    --store_.running_;
    store_.granted_open_ -= granted_ - sent_;
    request_.on_bytes = nullptr;
    request_.destination.clear();
    std::exchange(done_, nullptr)(std::move(answer));
  }

  StrictFakeStore& store_;
  EventLoop& loop_;
  store::GetRequest request_;
  store::GetCompletion done_;
  const Script script_;
  std::uint64_t granted_ = 0;
  std::uint64_t sent_ = 0;
  std::vector<std::byte> body_;
  std::string version_;
  std::uint64_t object_bytes_ = 0;
  TimerId deadline_ = TimerId::kNone;
  bool held_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
};

StrictFakeStore::~StrictFakeStore() = default;

store::OperationHandle StrictFakeStore::get(EventLoop& loop, store::GetRequest request,
                                            store::GetCompletion done) {
  std::uint64_t sum = 0;
  for (const Segment segment : request.destination) {
    if (segment.empty()) std::abort();
    sum += segment.size();
  }
  if (sum != request.length || request.length == 0) std::abort();
  gets.push_back({.number = gets.size(),
                  .key = request.key.text,
                  .offset = request.offset,
                  .length = request.length,
                  .granted = request.grant_bytes,
                  .version = request.version ? request.version->text : ""});
  auto read = std::make_shared<Read>(*this, loop, std::move(request), std::move(done),
                                     director(gets.back()));
  read->begin();
  return read;
}

store::OperationHandle StrictFakeStore::put(EventLoop&, store::PutRequest, store::PutCompletion) {
  std::abort();
}
store::OperationHandle StrictFakeStore::head(EventLoop&, store::ObjectKey, TimePoint,
                                             store::HeadCompletion) {
  std::abort();
}
store::OperationHandle StrictFakeStore::list(EventLoop&, store::ListRequest,
                                             store::ListCompletion) {
  std::abort();
}
store::OperationHandle StrictFakeStore::remove(EventLoop&, store::ObjectKey, TimePoint,
                                               store::RemoveCompletion) {
  std::abort();
}
store::OperationHandle StrictFakeStore::remove_many(EventLoop&, std::vector<store::ObjectKey>,
                                                    TimePoint, store::RemoveManyCompletion) {
  std::abort();
}

}  // namespace objectcache::stream
