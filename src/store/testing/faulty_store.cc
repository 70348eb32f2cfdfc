#include "store/testing/faulty_store.h"

#include <algorithm>
#include <utility>

#include "store/wrapped_call.h"

namespace objectcache::store {
namespace {

constexpr std::size_t kRecentKeys = 16;

/// Flips one bit of the `position`-th byte of a destination.
void flip_bit(std::vector<Segment>& segments, std::uint64_t position, unsigned bit) {
  for (Segment& segment : segments) {
    if (position < segment.size()) {
      segment[position] ^= std::byte{1} << (bit % 8);
      return;
    }
    position -= segment.size();
  }
}

}  // namespace

FaultyStore::FaultyStore(ObjectStore& wrapped, std::uint64_t seed, FaultRates rates)
    : wrapped_(wrapped), random_(seed), rates_(rates) {}
FaultyStore::~FaultyStore() = default;

void FaultyStore::set_rates(FaultRates rates) {
  const std::lock_guard lock(mutex_);
  rates_ = rates;
}

std::uint64_t FaultyStore::injected(Fault fault) const {
  const std::lock_guard lock(mutex_);
  const auto it = injected_.find(fault);
  return it == injected_.end() ? 0 : it->second;
}

std::uint64_t FaultyStore::injected_total() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (const auto& [fault, count] : injected_) total += count;
  return total;
}

FaultyStore::Draw FaultyStore::draw(Kind kind, const ObjectKey* key) {
  const std::lock_guard lock(mutex_);
  Draw out{.random = random_.next()};
  struct Chance {
    Fault fault;
    double rate;
    bool applies;
  };
  const bool get = kind == Kind::kGet;
  const Chance chances[] = {
      {Fault::kUnavailable, rates_.unavailable, true},
      {Fault::kThrottled, rates_.throttled, true},
      {Fault::kDelayed, rates_.delayed, true},
      {Fault::kHanging, rates_.hanging, true},
      {Fault::kFlipped, rates_.flipped, get},
      {Fault::kCut, rates_.cut, get},
      {Fault::kMissing, rates_.missing, get},
      {Fault::kVersionChanged, rates_.version_changed, get},
      {Fault::kSwapped, rates_.swapped, get},
      {Fault::kLostAnswer, rates_.lost_answer, kind == Kind::kChange},
  };
  double roll = random_.unit();
  for (const Chance& chance : chances) {
    if (!chance.applies) continue;
    if (roll < chance.rate) {
      out.fault = chance.fault;
      break;
    }
    roll -= chance.rate;
  }
  if (out.fault == Fault::kDelayed && rates_.delay_max.count() > 0) {
    out.delay = Duration(random_.below(static_cast<std::uint64_t>(rates_.delay_max.count())) + 1);
  }
  if (get && key != nullptr) {
    std::vector<ObjectKey> others;
    for (const ObjectKey& recent : recent_keys_) {
      if (recent != *key) others.push_back(recent);
    }
    if (out.fault == Fault::kSwapped && !others.empty()) {
      out.other_key = others[random_.below(others.size())];
    }
    if (std::ranges::find(recent_keys_, *key) == recent_keys_.end()) {
      if (recent_keys_.size() == kRecentKeys) recent_keys_.erase(recent_keys_.begin());
      recent_keys_.push_back(*key);
    }
  }
  if (out.fault == Fault::kSwapped && !out.other_key) out.fault = Fault::kNone;
  if (out.fault != Fault::kNone) ++injected_[out.fault];
  return out;
}

// ---------------------------------------------------------------- GET

class FaultyStore::FaultyGet final : public WrappedCall {
 public:
  FaultyGet(EventLoop& loop, CallName name, FaultyStore& store, Draw draw, GetRequest request,
            GetCompletion done)
      : WrappedCall(loop, std::move(name), request.deadline),
        store_(store),
        draw_(std::move(draw)),
        length_(request.length),
        destination_(request.destination),
        pinned_(request.version),
        on_bytes_(std::move(request.on_bytes)),
        request_(std::move(request)),
        done_(std::move(done)) {
    // Of these many bytes one is wrong, or is the last that comes.
    position_ = length_ == 0 ? 0 : draw_.random % length_;
  }

  void grant(std::uint64_t bytes) override {
    if (inner_) return inner_->grant(bytes);
    request_.grant_bytes += std::min(bytes, UINT64_MAX - request_.grant_bytes);
  }

 private:
  void begin() override {
    if (draw_.fault == Fault::kMissing) return answer({.outcome = GetOutcome::kMissing});
    if (draw_.fault == Fault::kVersionChanged) {
      return answer({.outcome = GetOutcome::kVersionChanged});
    }
    if (draw_.fault == Fault::kSwapped) {
      request_.key = *draw_.other_key;
      request_.version.reset();
    }
    auto self = shared_from_this();
    request_.on_bytes = [self](std::uint64_t bytes, const ObjectVersion& version) {
      static_cast<FaultyGet&>(*self).progress(bytes, version);
    };
    inner_ = store_.wrapped_.get(loop_, std::move(request_), [self](Result<GetAnswer> result) {
      static_cast<FaultyGet&>(*self).ended(std::move(result));
    });
  }
  void progress(std::uint64_t bytes, const ObjectVersion& version) {
    if (finished_) return;
    if (draw_.fault == Fault::kFlipped && bytes > position_) flip();
    if (draw_.fault == Fault::kCut && bytes > position_) {
      cut_ = true;
      inner_->cancel();
      return;
    }
    if (on_bytes_) on_bytes_(bytes, draw_.fault == Fault::kSwapped && pinned_ ? *pinned_ : version);
  }
  void ended(Result<GetAnswer> result) {
    const bool ok = result && result->outcome == GetOutcome::kOk;
    if (ok && draw_.fault == Fault::kFlipped) flip();
    if (ok && draw_.fault == Fault::kSwapped && pinned_) result->version = *pinned_;
    if (draw_.fault == Fault::kCut && (ok || cut_)) {
      result = std::unexpected(
          name_.error(ErrorCode::kUnavailable, "injected fault: the connection was cut"));
    }
    if (set_finished()) std::exchange(done_, nullptr)(std::move(result));
  }
  void flip() {
    if (std::exchange(flipped_, true)) return;
    flip_bit(destination_, position_, static_cast<unsigned>(draw_.random >> 40));
  }
  void answer(GetAnswer value) {
    if (set_finished()) std::exchange(done_, nullptr)(std::move(value));
  }
  void complete(Error error) override {
    std::exchange(done_, nullptr)(std::unexpected(std::move(error)));
  }

  FaultyStore& store_;
  const Draw draw_;
  const std::uint64_t length_;
  std::vector<Segment> destination_;
  const std::optional<ObjectVersion> pinned_;
  decltype(GetRequest::on_bytes) on_bytes_;
  GetRequest request_;
  GetCompletion done_;
  std::uint64_t position_ = 0;
  bool flipped_ = false;
  bool cut_ = false;
};

namespace {

/// Starts a call as its fault wants it.
void start_faulty(WrappedCall& call, EventLoop& loop, const CallName& name,
                  FaultyStore::Fault fault, Duration delay) {
  switch (fault) {
    case FaultyStore::Fault::kUnavailable:
      return call.give_up(name.error(ErrorCode::kUnavailable, "injected fault"));
    case FaultyStore::Fault::kThrottled:
      return call.give_up(name.error(ErrorCode::kThrottled, "injected fault"));
    case FaultyStore::Fault::kHanging:
      return call.begin_at(TimePoint::max());
    default:
      return call.begin_at(loop.now() + delay);
  }
}

}  // namespace

OperationHandle FaultyStore::get(EventLoop& loop, GetRequest request, GetCompletion done) {
  const auto name = name_call("GET", traits().url, request.key.text);
  Draw drawn = draw(Kind::kGet, &request.key);
  const Fault fault = drawn.fault;
  const Duration delay = drawn.delay;
  // Refused requests are not the place for faults.
  if (get_problem(request)) return wrapped_.get(loop, std::move(request), std::move(done));
  auto call = std::make_shared<FaultyGet>(loop, name, *this, std::move(drawn), std::move(request),
                                          std::move(done));
  start_faulty(*call, loop, name, fault, delay);
  return call;
}

// ---------------------------------------------------------------- the other calls

template <class T, class Start>
OperationHandle FaultyStore::run(EventLoop& loop, std::string_view action, std::string_view key,
                                 TimePoint deadline, Kind kind, Start start,
                                 std::move_only_function<void(Result<T>)> done) {
  const auto name = name_call(action, traits().url, key);
  const Draw drawn = draw(kind, nullptr);
  if (drawn.fault == Fault::kLostAnswer) {
    done = [name, done = std::move(done)](Result<T> result) mutable {
      if (result) {
        result = std::unexpected(
            name.error(ErrorCode::kUnavailable, "injected fault: the answer was lost"));
      }
      done(std::move(result));
    };
  }
  auto call =
      std::make_shared<PassedCall<T>>(loop, name, deadline, std::move(start), std::move(done));
  start_faulty(*call, loop, name, drawn.fault, drawn.delay);
  return call;
}

OperationHandle FaultyStore::put(EventLoop& loop, PutRequest request, PutCompletion done) {
  const std::string key = request.key.text;
  const TimePoint deadline = request.deadline;
  return run<PutAnswer>(
      loop, "PUT", key, deadline, Kind::kChange,
      [this, &loop, request = std::move(request)](PutCompletion passed) mutable {
        return wrapped_.put(loop, std::move(request), std::move(passed));
      },
      std::move(done));
}

OperationHandle FaultyStore::head(EventLoop& loop, ObjectKey key, TimePoint deadline,
                                  HeadCompletion done) {
  const std::string text = key.text;
  return run<std::optional<ObjectInfo>>(
      loop, "HEAD", text, deadline, Kind::kLook,
      [this, &loop, key = std::move(key), deadline](HeadCompletion passed) mutable {
        return wrapped_.head(loop, std::move(key), deadline, std::move(passed));
      },
      std::move(done));
}

OperationHandle FaultyStore::list(EventLoop& loop, ListRequest request, ListCompletion done) {
  const std::string prefix = request.prefix;
  const TimePoint deadline = request.deadline;
  return run<ListPage>(
      loop, "LIST", prefix, deadline, Kind::kLook,
      [this, &loop, request = std::move(request)](ListCompletion passed) mutable {
        return wrapped_.list(loop, std::move(request), std::move(passed));
      },
      std::move(done));
}

OperationHandle FaultyStore::remove(EventLoop& loop, ObjectKey key, TimePoint deadline,
                                    RemoveCompletion done) {
  const std::string text = key.text;
  return run<void>(
      loop, "DELETE", text, deadline, Kind::kChange,
      [this, &loop, key = std::move(key), deadline](RemoveCompletion passed) mutable {
        return wrapped_.remove(loop, std::move(key), deadline, std::move(passed));
      },
      std::move(done));
}

OperationHandle FaultyStore::remove_many(EventLoop& loop, std::vector<ObjectKey> keys,
                                         TimePoint deadline, RemoveManyCompletion done) {
  return run<std::vector<RemoveFailure>>(
      loop, "DELETE", "", deadline, Kind::kChange,
      [this, &loop, keys = std::move(keys), deadline](RemoveManyCompletion passed) mutable {
        return wrapped_.remove_many(loop, std::move(keys), deadline, std::move(passed));
      },
      std::move(done));
}

}  // namespace objectcache::store
