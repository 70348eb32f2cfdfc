#include "stream/testing/fake_link_store.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace objectcache::stream {

class FakeLinkStore::Read final : public store::Operation,
                                  public std::enable_shared_from_this<Read> {
 public:
  Read(FakeLinkStore& store, EventLoop& loop, store::GetRequest request, store::GetCompletion done)
      : store_(store), loop_(loop), request_(std::move(request)), done_(std::move(done)) {
    granted_ = std::min(request_.grant_bytes, request_.length);
  }
  void begin() {
    loop_.run_at(loop_.now() + store_.options_.first_byte, [self = shared_from_this()] {
      self->answered_ = true;
      self->queue();
    });
  }
  void cancel() override {
    if (!done_) return;
    cancelled_ = true;
    loop_.post([self = shared_from_this()] {
      self->finish(fail(ErrorCode::kCancelled, "cancelled", "GET", self->request_.key.text));
    });
  }
  void grant(std::uint64_t bytes) override {
    granted_ += std::min(bytes, request_.length - granted_);
    queue();
  }
  /// Bytes that the link may carry now.
  [[nodiscard]] std::uint64_t open_bytes() const { return cancelled_ ? 0 : granted_ - sent_; }
  void deliver(std::uint64_t bytes) {
    queued_ = false;
    if (cancelled_) return;
    const auto& body = store_.objects.at(request_.key.text);
    std::uint64_t start = 0;
    for (const Segment segment : request_.destination) {
      const std::uint64_t end = start + segment.size();
      const std::uint64_t a = std::max(sent_, start);
      const std::uint64_t b = std::min(sent_ + bytes, end);
      if (a < b) {
        std::copy_n(body.begin() + static_cast<std::ptrdiff_t>(request_.offset + a), b - a,
                    segment.begin() + static_cast<std::ptrdiff_t>(a - start));
      }
      start = end;
    }
    sent_ += bytes;
    request_.on_bytes(sent_, {"v"});
    if (sent_ == request_.length) {
      loop_.post([self = shared_from_this()] { self->finish(store::GetAnswer{.version = {"v"}}); });
    }
    queue();
  }

 private:
  void queue() {
    if (!answered_ || queued_ || open_bytes() == 0) return;
    queued_ = true;
    store_.ready_.push_back(shared_from_this());
    store_.serve(loop_);
  }
  void finish(Result<store::GetAnswer> answer) {
    if (done_) std::exchange(done_, nullptr)(std::move(answer));
    request_.on_bytes = nullptr;
  }

  FakeLinkStore& store_;
  EventLoop& loop_;
  store::GetRequest request_;
  store::GetCompletion done_;
  std::uint64_t granted_ = 0;
  std::uint64_t sent_ = 0;
  bool answered_ = false;
  bool queued_ = false;
  bool cancelled_ = false;
};

FakeLinkStore::~FakeLinkStore() = default;

void FakeLinkStore::serve(EventLoop& loop) {
  if (serving_ || ready_.empty()) return;
  serving_ = true;
  auto read = std::move(ready_.front());
  ready_.pop_front();
  const std::uint64_t bytes = std::min(options_.piece_bytes, read->open_bytes());
  const auto time = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / options_.bytes_per_s));
  busy_ += time;
  loop.run_at(loop.now() + time, [this, &loop, read, bytes] {
    serving_ = false;
    read->deliver(bytes);
    serve(loop);
  });
}

store::OperationHandle FakeLinkStore::get(EventLoop& loop, store::GetRequest request,
                                          store::GetCompletion done) {
  auto read = std::make_shared<Read>(*this, loop, std::move(request), std::move(done));
  read->begin();
  return read;
}

store::OperationHandle FakeLinkStore::put(EventLoop&, store::PutRequest, store::PutCompletion) {
  std::abort();
}
store::OperationHandle FakeLinkStore::head(EventLoop&, store::ObjectKey, TimePoint,
                                           store::HeadCompletion) {
  std::abort();
}
store::OperationHandle FakeLinkStore::list(EventLoop&, store::ListRequest, store::ListCompletion) {
  std::abort();
}
store::OperationHandle FakeLinkStore::remove(EventLoop&, store::ObjectKey, TimePoint,
                                             store::RemoveCompletion) {
  std::abort();
}
store::OperationHandle FakeLinkStore::remove_many(EventLoop&, std::vector<store::ObjectKey>,
                                                  TimePoint, store::RemoveManyCompletion) {
  std::abort();
}

}  // namespace objectcache::stream
