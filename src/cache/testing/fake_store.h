#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/object_store.h"

namespace objectcache::cache::testing {

/// A fake ObjectStore for this room's tests: objects in a map, a fixed latency, and a hook that
/// decides each call's fate. Counts requests. Works on FakeEventLoop and on real loops.
class FakeStore final : public store::ObjectStore {
 public:
  enum class Verb { kGet, kPut, kHead, kList, kRemove };
  enum class Fate { kServe, kFail, kDeny, kHang };
  struct Call {
    Verb verb;
    std::string key;
  };

  Duration latency{};
  /// Called under the store's lock.
  std::function<Fate(const Call&)> fate = [](const Call&) { return Fate::kServe; };

  std::vector<Call> calls() const {
    const std::scoped_lock lock(mutex_);
    return calls_;
  }
  std::size_t count(Verb verb) const {
    const std::scoped_lock lock(mutex_);
    std::size_t n = 0;
    for (const Call& call : calls_) n += call.verb == verb ? 1 : 0;
    return n;
  }
  std::size_t in_flight_max() const {
    const std::scoped_lock lock(mutex_);
    return in_flight_max_;
  }
  std::map<std::string, std::string> objects() const {
    const std::scoped_lock lock(mutex_);
    return objects_;
  }
  void set(const std::string& key, std::string body) {
    const std::scoped_lock lock(mutex_);
    objects_[key] = std::move(body);
    ++versions_[key];
  }
  void erase(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    objects_.erase(key);
  }

  store::OperationHandle get(EventLoop& loop, store::GetRequest request,
                             store::GetCompletion done) override {
    auto shared = std::make_shared<store::GetRequest>(std::move(request));
    return begin<store::GetAnswer>(loop, {Verb::kGet, shared->key.text}, shared->deadline,
                                   std::move(done), [this, shared]() -> Result<store::GetAnswer> {
                                     const auto at = objects_.find(shared->key.text);
                                     if (at == objects_.end())
                                       return answer(store::GetOutcome::kMissing);
                                     if (at->second.size() < shared->offset + shared->length) {
                                       return answer(store::GetOutcome::kOutOfRange);
                                     }
                                     std::uint64_t from = shared->offset;
                                     for (const Segment& segment : shared->destination) {
                                       std::memcpy(segment.data(), at->second.data() + from,
                                                   segment.size());
                                       from += segment.size();
                                     }
                                     return store::GetAnswer{.outcome = store::GetOutcome::kOk,
                                                             .version = version(shared->key.text),
                                                             .object_bytes = at->second.size()};
                                   });
  }
  store::OperationHandle put(EventLoop& loop, store::PutRequest request,
                             store::PutCompletion done) override {
    auto shared = std::make_shared<store::PutRequest>(std::move(request));
    return begin<store::PutAnswer>(
        loop, {Verb::kPut, shared->key.text}, shared->deadline, std::move(done),
        [this, shared]() -> Result<store::PutAnswer> {
          if (shared->mode == store::PutMode::kIfAbsent && objects_.contains(shared->key.text)) {
            return store::PutAnswer{.outcome = store::PutOutcome::kAlreadyExists, .version = {}};
          }
          std::string& body = objects_[shared->key.text];
          body.clear();
          for (const ConstSegment& segment : shared->body) {
            body.append(reinterpret_cast<const char*>(segment.data()), segment.size());
          }
          ++versions_[shared->key.text];
          return store::PutAnswer{.version = version(shared->key.text)};
        });
  }
  store::OperationHandle head(EventLoop& loop, store::ObjectKey key, TimePoint deadline,
                              store::HeadCompletion done) override {
    return begin<std::optional<store::ObjectInfo>>(
        loop, {Verb::kHead, key.text}, deadline, std::move(done),
        [this, key]() -> Result<std::optional<store::ObjectInfo>> {
          const auto at = objects_.find(key.text);
          if (at == objects_.end()) return std::nullopt;
          return store::ObjectInfo{
              .key = key, .size_bytes = at->second.size(), .version = version(key.text)};
        });
  }
  store::OperationHandle list(EventLoop& loop, store::ListRequest request,
                              store::ListCompletion done) override {
    return begin<store::ListPage>(
        loop, {Verb::kList, request.prefix}, request.deadline, std::move(done),
        [this, request]() -> Result<store::ListPage> { return page(request); });
  }
  store::OperationHandle remove(EventLoop& loop, store::ObjectKey key, TimePoint deadline,
                                store::RemoveCompletion done) override {
    return begin<void>(loop, {Verb::kRemove, key.text}, deadline, std::move(done),
                       [this, key]() -> Result<void> {
                         objects_.erase(key.text);
                         return {};
                       });
  }
  store::OperationHandle remove_many(EventLoop& loop, std::vector<store::ObjectKey> keys,
                                     TimePoint deadline,
                                     store::RemoveManyCompletion done) override {
    return begin<std::vector<store::RemoveFailure>>(
        loop, {Verb::kRemove, keys.empty() ? "" : keys.front().text}, deadline, std::move(done),
        [this, keys]() -> Result<std::vector<store::RemoveFailure>> {
          for (const auto& key : keys) objects_.erase(key.text);
          return std::vector<store::RemoveFailure>{};
        });
  }
  [[nodiscard]] const store::StoreTraits& traits() const override { return traits_; }

 private:
  template <class T>
  struct Running final : store::Operation, std::enable_shared_from_this<Running<T>> {
    FakeStore* store = nullptr;
    EventLoop* loop = nullptr;
    TimerId timer = TimerId::kNone;
    std::move_only_function<void(Result<T>)> done;
    std::function<Result<T>()> serve;

    void end(const std::function<Result<T>()>& how) {
      if (!done) return;
      loop->cancel_timer(timer);
      std::optional<Result<T>> result;
      {
        const std::scoped_lock lock(store->mutex_);
        result.emplace(how());
        --store->in_flight_;
      }
      auto call = std::exchange(done, nullptr);
      call(std::move(*result));
    }
    void cancel() override {
      loop->post([self = this->shared_from_this()] {
        self->end([] { return Result<T>(fail(ErrorCode::kCancelled, "cancelled", "fake")); });
      });
    }
  };

  template <class T>
  store::OperationHandle begin(EventLoop& loop, Call call, TimePoint deadline,
                               std::move_only_function<void(Result<T>)> done,
                               std::function<Result<T>()> serve) {
    auto running = std::make_shared<Running<T>>();
    running->store = this;
    running->loop = &loop;
    running->done = std::move(done);
    Fate what{};
    {
      const std::scoped_lock lock(mutex_);
      what = fate(call);
      calls_.push_back(call);
      in_flight_max_ = std::max(in_flight_max_, ++in_flight_);
    }
    const TimePoint at = loop.now() + latency;
    if (what == Fate::kHang || at > deadline) {
      running->timer = loop.run_at(deadline, [running, key = call.key] {
        running->end(
            [&] { return Result<T>(fail(ErrorCode::kDeadlineExceeded, "too late", "fake", key)); });
      });
    } else if (what == Fate::kFail || what == Fate::kDeny) {
      const ErrorCode code =
          what == Fate::kFail ? ErrorCode::kUnavailable : ErrorCode::kPermissionDenied;
      running->timer = loop.run_at(at, [running, code, key = call.key] {
        running->end([&] { return Result<T>(fail(code, "injected", "fake", key)); });
      });
    } else {
      running->timer = loop.run_at(at, [running, serve] { running->end(serve); });
    }
    return running;
  }
  static store::GetAnswer answer(store::GetOutcome outcome) {
    store::GetAnswer out;
    out.outcome = outcome;
    return out;
  }
  store::ObjectVersion version(const std::string& key) {
    return {"\"" + std::to_string(versions_[key]) + "\""};
  }
  store::ListPage page(const store::ListRequest& request) {
    store::ListPage out;
    for (const auto& [key, body] : objects_) {
      if (!key.starts_with(request.prefix) || key <= request.start_after) continue;
      const std::size_t at = request.delimiter == 0
                                 ? std::string::npos
                                 : key.find(request.delimiter, request.prefix.size());
      if (at != std::string::npos) {
        const std::string rolled = key.substr(0, at + 1);
        if (!request.start_after.empty() && request.start_after.starts_with(rolled)) continue;
        if (!out.common_prefixes.empty() && out.common_prefixes.back() == rolled) continue;
        if (out.entries.size() + out.common_prefixes.size() >= request.entries_max) {
          return more(out);
        }
        out.common_prefixes.push_back(rolled);
        last_ = rolled + '\x7f';
        continue;
      }
      if (out.entries.size() + out.common_prefixes.size() >= request.entries_max) return more(out);
      out.entries.push_back({.key = {key}, .size_bytes = body.size(), .version = version(key)});
      last_ = key;
    }
    return out;
  }
  store::ListPage more(store::ListPage out) {
    out.next_start_after = last_;
    return out;
  }

  store::StoreTraits traits_{.url = "fake:"};
  mutable std::mutex mutex_;
  std::map<std::string, std::string> objects_;
  std::map<std::string, int> versions_;
  std::vector<Call> calls_;
  std::string last_;
  std::size_t in_flight_ = 0;
  std::size_t in_flight_max_ = 0;
};

}  // namespace objectcache::cache::testing
