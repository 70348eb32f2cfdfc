#include "store/memory/memory_store.h"

#include <algorithm>
#include <new>
#include <utility>

#include "store/memory/memory_objects.h"
#include "store/request_checks.h"
#include "store/segment_cursor.h"

namespace objectcache::store {

struct MemoryStore::State {
  explicit State(Options o) : options(o), objects(o.capacity_bytes, o.objects_max) {}
  const Options options;
  MemoryObjects objects;
};

namespace {

/// A call that is done in one step.
template <class T>
class ShortCall final : public Operation, public std::enable_shared_from_this<ShortCall<T>> {
 public:
  using Completion = std::move_only_function<void(Result<T>)>;

  template <class Work>
  static OperationHandle start(EventLoop& loop, CallName name, TimePoint deadline,
                               std::optional<std::string> problem, Completion done, Work work) {
    auto call = std::make_shared<ShortCall>();
    loop.post([call, &loop, name = std::move(name), deadline, problem = std::move(problem),
               done = std::move(done), work = std::move(work)]() mutable {
      if (problem) {
        done(std::unexpected(name.error(ErrorCode::kInvalidArgument, std::move(*problem))));
      } else if (call->cancelled_) {
        done(std::unexpected(name.cancelled()));
      } else if (loop.now() >= deadline) {
        done(std::unexpected(name.deadline_exceeded()));
      } else {
        done(work());
      }
    });
    return call;
  }
  void cancel() override { cancelled_ = true; }

 private:
  bool cancelled_ = false;
};

/// A call that moves a body in pieces: one posted task each.
class LongCall : public Operation, public std::enable_shared_from_this<LongCall> {
 public:
  LongCall(EventLoop& loop, CallName name, TimePoint deadline)
      : loop_(loop), name_(std::move(name)), deadline_(deadline) {}

  void cancel() override {
    if (finished_ || cancelled_) return;
    cancelled_ = true;
    resume();
  }
  /// Runs step() soon, once, however often this is called before.
  void resume() {
    if (scheduled_ || finished_) return;
    scheduled_ = true;
    loop_.post([self = shared_from_this()] {
      self->scheduled_ = false;
      if (self->finished_) return;
      if (self->cancelled_) return self->give_up(self->name_.cancelled());
      if (self->loop_.now() >= self->deadline_) {
        return self->give_up(self->name_.deadline_exceeded());
      }
      self->step();
    });
  }

 protected:
  virtual void step() = 0;
  virtual void give_up(Error error) = 0;
  void set_finished() {
    finished_ = true;
    loop_.cancel_timer(std::exchange(timer_, TimerId::kNone));
  }
  /// Nothing to do until someone calls resume(); the deadline still counts.
  void hold_still() {
    if (timer_ != TimerId::kNone) return;
    timer_ = loop_.run_at(deadline_, [self = shared_from_this()] {
      self->timer_ = TimerId::kNone;
      self->resume();
    });
  }

  EventLoop& loop_;
  const CallName name_;
  const TimePoint deadline_;
  bool cancelled_ = false;

 private:
  bool finished_ = false;
  bool scheduled_ = false;
  TimerId timer_ = TimerId::kNone;
};

class GetCall final : public LongCall {
 public:
  GetCall(EventLoop& loop, CallName name, std::shared_ptr<MemoryObjects> objects,
          std::size_t piece_bytes, GetRequest request, GetCompletion done)
      : LongCall(loop, std::move(name), request.deadline),
        objects_(std::move(objects)),
        piece_bytes_(piece_bytes),
        request_(std::move(request)),
        done_(std::move(done)),
        granted_bytes_(request_.grant_bytes),
        cursor_(request_.destination) {}

  void grant(std::uint64_t bytes) override {
    granted_bytes_ += std::min(bytes, UINT64_MAX - granted_bytes_);
    resume();
  }

 private:
  void step() override {
    if (auto problem = get_problem(request_)) {
      return give_up(name_.error(ErrorCode::kInvalidArgument, std::move(*problem)));
    }
    if (!object_ && !open()) return;
    const std::uint64_t want =
        std::min({request_.length, granted_bytes_, std::uint64_t{done_bytes_ + piece_bytes_}});
    if (want == done_bytes_) return hold_still();
    copy_out(cursor_, {object_->body->bytes.get() + request_.offset + done_bytes_,
                       static_cast<std::size_t>(want - done_bytes_)});
    done_bytes_ = want;
    // The caller may cancel or grant from inside.
    if (request_.on_bytes) request_.on_bytes(done_bytes_, object_->version);
    if (done_bytes_ < request_.length) return resume();
    finish(GetAnswer{.outcome = GetOutcome::kOk,
                     .version = object_->version,
                     .object_bytes = object_->body->size_bytes});
  }
  bool open() {
    object_ = objects_->find(request_.key.text);
    auto outcome = GetOutcome::kOk;
    if (!object_) {
      outcome = GetOutcome::kMissing;
    } else if (request_.version && *request_.version != object_->version) {
      outcome = GetOutcome::kVersionChanged;
    } else if (request_.offset + request_.length > object_->body->size_bytes) {
      outcome = GetOutcome::kOutOfRange;
    }
    if (outcome == GetOutcome::kOk) return true;
    finish(GetAnswer{.outcome = outcome, .version = {}});
    return false;
  }
  void give_up(Error error) override { finish(std::unexpected(std::move(error))); }
  void finish(Result<GetAnswer> result) {
    set_finished();
    request_.on_bytes = nullptr;
    std::exchange(done_, nullptr)(std::move(result));
  }

  const std::shared_ptr<MemoryObjects> objects_;
  const std::size_t piece_bytes_;
  GetRequest request_;
  GetCompletion done_;
  std::uint64_t granted_bytes_;
  std::uint64_t done_bytes_ = 0;
  SegmentCursor cursor_;
  std::optional<MemoryObjects::Object> object_;  // Keeps the bytes of one version alive.
};

class PutCall final : public LongCall {
 public:
  PutCall(EventLoop& loop, CallName name, std::shared_ptr<MemoryObjects> objects,
          std::size_t piece_bytes, PutRequest request, PutCompletion done)
      : LongCall(loop, std::move(name), request.deadline),
        objects_(std::move(objects)),
        piece_bytes_(piece_bytes),
        request_(std::move(request)),
        done_(std::move(done)),
        cursor_(request_.body) {}
  ~PutCall() override { drop_body(); }

 private:
  void step() override {
    if (!body_ && !open()) return;
    const std::uint64_t want =
        std::min(body_->size_bytes, std::uint64_t{done_bytes_ + piece_bytes_});
    copy_in({body_->bytes.get() + done_bytes_, static_cast<std::size_t>(want - done_bytes_)},
            cursor_);
    done_bytes_ = want;
    if (done_bytes_ < body_->size_bytes) return resume();
    const auto answer = objects_->publish(request_.key.text, body_, request_.mode);
    if (!answer)
      return give_up(name_.error(ErrorCode::kOutOfSpace, "it has no room for more objects"));
    if (answer->outcome == PutOutcome::kCreated) body_.reset();
    finish(*answer);
  }
  bool open() {
    if (auto problem = put_problem(request_)) {
      give_up(name_.error(ErrorCode::kInvalidArgument, std::move(*problem)));
      return false;
    }
    if (request_.mode == PutMode::kIfAbsent && objects_->find(request_.key.text)) {
      finish(PutAnswer{.outcome = PutOutcome::kAlreadyExists, .version = {}});
      return false;
    }
    const std::uint64_t bytes = body_bytes(request_.body);
    auto body = std::make_shared<MemoryObjects::Body>();
    bool room = objects_->reserve(bytes);
    if (room) {
      body->bytes.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
      room = body->bytes != nullptr;
      if (!room) objects_->unreserve(bytes);
    }
    if (!room) {
      give_up(name_.error(ErrorCode::kOutOfSpace, "the memory store is full"));
      return false;
    }
    body->size_bytes = bytes;
    body_ = std::move(body);
    return true;
  }
  void drop_body() {
    if (body_) objects_->unreserve(body_->size_bytes);
    body_.reset();
  }
  void give_up(Error error) override { finish(std::unexpected(std::move(error))); }
  void finish(Result<PutAnswer> result) {
    set_finished();
    drop_body();
    std::exchange(done_, nullptr)(std::move(result));
  }

  const std::shared_ptr<MemoryObjects> objects_;
  const std::size_t piece_bytes_;
  PutRequest request_;
  PutCompletion done_;
  ConstSegmentCursor cursor_;
  std::uint64_t done_bytes_ = 0;
  std::shared_ptr<MemoryObjects::Body> body_;  // Its bytes are reserved while it is held here.
};

}  // namespace

MemoryStore::MemoryStore() : MemoryStore(Options{}) {}
MemoryStore::MemoryStore(Options options) : state_(std::make_shared<State>(options)) {
  traits_.url = "memory:";
}
MemoryStore::~MemoryStore() = default;

OperationHandle MemoryStore::get(EventLoop& loop, GetRequest request, GetCompletion done) {
  auto name = name_call("GET", traits_.url, request.key.text);
  auto call = std::make_shared<GetCall>(
      loop, std::move(name), std::shared_ptr<MemoryObjects>(state_, &state_->objects),
      state_->options.piece_bytes, std::move(request), std::move(done));
  call->resume();
  return call;
}

OperationHandle MemoryStore::put(EventLoop& loop, PutRequest request, PutCompletion done) {
  auto name = name_call("PUT", traits_.url, request.key.text);
  auto call = std::make_shared<PutCall>(
      loop, std::move(name), std::shared_ptr<MemoryObjects>(state_, &state_->objects),
      state_->options.piece_bytes, std::move(request), std::move(done));
  call->resume();
  return call;
}

OperationHandle MemoryStore::head(EventLoop& loop, ObjectKey key, TimePoint deadline,
                                  HeadCompletion done) {
  auto name = name_call("HEAD", traits_.url, key.text);
  auto problem = object_key_problem(key);
  return ShortCall<std::optional<ObjectInfo>>::start(
      loop, std::move(name), deadline, std::move(problem), std::move(done),
      [state = state_, key = std::move(key)]() -> Result<std::optional<ObjectInfo>> {
        const auto object = state->objects.find(key.text);
        if (!object) return std::nullopt;
        return ObjectInfo{.key = key,
                          .size_bytes = object->body->size_bytes,
                          .version = object->version,
                          .modified = object->modified};
      });
}

OperationHandle MemoryStore::list(EventLoop& loop, ListRequest request, ListCompletion done) {
  auto name = name_call("LIST", traits_.url, request.prefix);
  auto problem = list_problem(request);
  const TimePoint deadline = request.deadline;
  return ShortCall<ListPage>::start(
      loop, std::move(name), deadline, std::move(problem), std::move(done),
      [state = state_, request = std::move(request)]() -> Result<ListPage> {
        return state->objects.list(request);
      });
}

OperationHandle MemoryStore::remove(EventLoop& loop, ObjectKey key, TimePoint deadline,
                                    RemoveCompletion done) {
  auto name = name_call("DELETE", traits_.url, key.text);
  auto problem = object_key_problem(key);
  return ShortCall<void>::start(loop, std::move(name), deadline, std::move(problem),
                                std::move(done),
                                [state = state_, key = std::move(key)]() -> Result<void> {
                                  state->objects.erase(key.text);
                                  return {};
                                });
}

OperationHandle MemoryStore::remove_many(EventLoop& loop, std::vector<ObjectKey> keys,
                                         TimePoint deadline, RemoveManyCompletion done) {
  auto name = name_call("DELETE", traits_.url, keys.size() == 1 ? keys[0].text : "");
  auto problem = remove_many_problem(keys);
  return ShortCall<std::vector<RemoveFailure>>::start(
      loop, std::move(name), deadline, std::move(problem), std::move(done),
      [state = state_, keys = std::move(keys)]() -> Result<std::vector<RemoveFailure>> {
        for (const ObjectKey& key : keys) state->objects.erase(key.text);
        return std::vector<RemoveFailure>();
      });
}

MemoryStore::Usage MemoryStore::usage() const {
  return {.bytes = state_->objects.used_bytes(), .objects = state_->objects.size()};
}

}  // namespace objectcache::store
