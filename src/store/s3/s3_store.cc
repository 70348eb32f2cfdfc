#include "store/s3/s3_store.h"

#include <condition_variable>
#include <utility>

#include "store/request_checks.h"
#include "store/s3/get_operation.h"
#include "store/s3/head_operation.h"
#include "store/s3/lane.h"
#include "store/s3/list_operation.h"
#include "store/s3/put_operation.h"
#include "store/s3/remove_operation.h"
#include "store/s3/s3_core.h"

namespace objectcache::store_s3 {
namespace {

/// The handle of a call that was refused: nothing is left to cancel.
class RefusedOperation final : public store::Operation {
 public:
  void cancel() override {}
};

/// Destroys a lane on its loop's thread and waits for it.
void destroy_on_loop(EventLoop& loop, std::unique_ptr<Lane> lane, CredentialSource& credentials) {
  if (loop.is_owner_thread()) {
    credentials.leave(loop);
    return;  // `lane` ends here.
  }
  std::mutex mutex;
  std::condition_variable gone;
  bool done = false;
  loop.post([&, lane = std::move(lane)]() mutable {
    credentials.leave(loop);
    lane.reset();
    // Under the lock, so that the waiting thread cannot take `gone` away meanwhile.
    const std::lock_guard lock(mutex);
    done = true;
    gone.notify_one();
  });
  std::unique_lock lock(mutex);
  gone.wait(lock, [&] { return done; });
}

Error invalid(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message)).error();
}

}  // namespace

Result<std::unique_ptr<S3Store>> S3Store::create(S3Options options, Ports ports) {
  if (options.endpoints.empty()) {
    return fail(ErrorCode::kInvalidArgument, "an S3 store needs an endpoint", "open",
                options.url());
  }
  if (options.connections == 0) {
    return fail(ErrorCode::kInvalidArgument, "an S3 store needs at least one connection", "open",
                options.url());
  }
  if (!options.prefix.empty()) {
    if (const auto problem = store::object_key_problem({options.prefix})) {
      return fail(ErrorCode::kInvalidArgument, "the prefix is no key: " + *problem, "open",
                  options.url());
    }
  }
  std::vector<s3::BucketAddress> addresses;
  for (const s3::Endpoint& endpoint : options.endpoints) {
    auto address = s3::BucketAddress::create(endpoint, options.bucket, options.style);
    if (!address) return std::unexpected(std::move(address.error()));
    addresses.push_back(std::move(*address));
  }
  auto core = std::make_unique<S3Core>(S3Core::Parts{.options = std::move(options),
                                                     .addresses = std::move(addresses),
                                                     .wall = std::move(ports.wall),
                                                     .connector = std::move(ports.connector),
                                                     .credentials = std::move(ports.credentials),
                                                     .seed = ports.seed});
  return std::unique_ptr<S3Store>(new S3Store(std::move(core)));
}

S3Store::S3Store(std::unique_ptr<S3Core> core) : core_(std::move(core)) {
  traits_racing_.url = core_->options.url();
  traits_racing_.put_if_absent_is_atomic = false;
  traits_racing_.durable_after_put = true;
  traits_atomic_ = traits_racing_;
  traits_atomic_.put_if_absent_is_atomic = true;
}

S3Store::~S3Store() {
  for (LoopLane& it : lanes_) {
    destroy_on_loop(*it.loop, std::move(it.lane), *core_->credentials);
  }
}

Result<Lane*> S3Store::lane_of(EventLoop& loop) {
  std::uint64_t seed = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const LoopLane& it : lanes_) {
      if (it.loop == &loop) return it.lane.get();
    }
    seed = core_->seed + lanes_.size();
  }
  // Only this loop's own thread makes its lane.
  auto lane = Lane::create(*core_, loop, seed);
  if (!lane) return std::unexpected(std::move(lane.error()));
  const std::lock_guard lock(mutex_);
  lanes_.push_back({&loop, std::move(*lane)});
  return lanes_.back().lane.get();
}

template <class Done>
store::OperationHandle S3Store::refuse(EventLoop& loop, std::string_view action,
                                       const std::string& key, Error error, Done done) {
  if (error.action.empty()) error.action = action;
  if (error.key.empty()) error.key = core_->key_url(key);
  core_->counters.add_error(error.code);
  loop.post([done = std::move(done), error = std::move(error)]() mutable {
    done(std::unexpected(std::move(error)));
  });
  return std::make_shared<RefusedOperation>();
}

store::OperationHandle S3Store::get(EventLoop& loop, store::GetRequest request,
                                    store::GetCompletion done) {
  core_->counters.add_operation(Verb::kGet);
  if (auto problem = store::get_problem(request)) {
    return refuse(loop, "GET", request.key.text, invalid(std::move(*problem)), std::move(done));
  }
  auto lane = lane_of(loop);
  if (!lane) {
    return refuse(loop, "GET", request.key.text, lane.error(), std::move(done));
  }
  return GetOperation::begin(**lane, std::move(request), std::move(done));
}

store::OperationHandle S3Store::put(EventLoop& loop, store::PutRequest request,
                                    store::PutCompletion done) {
  core_->counters.add_operation(Verb::kPut);
  if (auto problem = store::put_problem(request)) {
    return refuse(loop, "PUT", request.key.text, invalid(std::move(*problem)), std::move(done));
  }
  auto lane = lane_of(loop);
  if (!lane) {
    return refuse(loop, "PUT", request.key.text, lane.error(), std::move(done));
  }
  return PutOperation::begin(**lane, std::move(request), std::move(done));
}

store::OperationHandle S3Store::head(EventLoop& loop, store::ObjectKey key, TimePoint deadline,
                                     store::HeadCompletion done) {
  core_->counters.add_operation(Verb::kHead);
  if (auto problem = store::object_key_problem(key)) {
    return refuse(loop, "HEAD", key.text, invalid(std::move(*problem)), std::move(done));
  }
  auto lane = lane_of(loop);
  if (!lane) return refuse(loop, "HEAD", key.text, lane.error(), std::move(done));
  return HeadOperation::begin(**lane, std::move(key), deadline, std::move(done));
}

store::OperationHandle S3Store::list(EventLoop& loop, store::ListRequest request,
                                     store::ListCompletion done) {
  core_->counters.add_operation(Verb::kList);
  if (auto problem = store::list_problem(request)) {
    return refuse(loop, "LIST", request.prefix, invalid(std::move(*problem)), std::move(done));
  }
  auto lane = lane_of(loop);
  if (!lane) {
    return refuse(loop, "LIST", request.prefix, lane.error(), std::move(done));
  }
  return ListOperation::begin(**lane, std::move(request), std::move(done));
}

store::OperationHandle S3Store::remove(EventLoop& loop, store::ObjectKey key, TimePoint deadline,
                                       store::RemoveCompletion done) {
  core_->counters.add_operation(Verb::kDelete);
  if (auto problem = store::object_key_problem(key)) {
    return refuse(loop, "DELETE", key.text, invalid(std::move(*problem)), std::move(done));
  }
  auto lane = lane_of(loop);
  if (!lane) return refuse(loop, "DELETE", key.text, lane.error(), std::move(done));
  return begin_remove(**lane, key, deadline, std::move(done));
}

store::OperationHandle S3Store::remove_many(EventLoop& loop, std::vector<store::ObjectKey> keys,
                                            TimePoint deadline, store::RemoveManyCompletion done) {
  core_->counters.add_operation(Verb::kDeleteMany);
  if (auto problem = store::remove_many_problem(keys)) {
    return refuse(loop, "DELETE", "", invalid(std::move(*problem)), std::move(done));
  }
  if (keys.empty()) {
    loop.post([done = std::move(done)]() mutable { done(std::vector<store::RemoveFailure>{}); });
    return std::make_shared<RefusedOperation>();
  }
  auto lane = lane_of(loop);
  if (!lane) return refuse(loop, "DELETE", "", lane.error(), std::move(done));
  return RemoveManyOperation::begin(**lane, std::move(keys), deadline, std::move(done));
}

store::OperationHandle S3Store::probe(
    EventLoop& loop, TimePoint deadline,
    std::move_only_function<void(Result<PutCondition::State>)> done) {
  auto lane = lane_of(loop);
  if (!lane) return refuse(loop, "PUT", "", lane.error(), std::move(done));
  return PutProbe::begin(
      **lane, deadline,
      [core = core_.get(), done = std::move(done)](Result<PutCondition::State> found) mutable {
        core->put_condition.settle(found);
        done(std::move(found));
      });
}

const store::StoreTraits& S3Store::traits() const {
  return core_->put_condition.state() == PutCondition::State::kHonoured ? traits_atomic_
                                                                        : traits_racing_;
}

const S3Options& S3Store::options() const { return core_->options; }

std::optional<store::StoreFigures> S3Store::figures() const {
  S3Stats counted;
  core_->counters.copy_to(counted);
  const auto requests = [&](Verb verb) { return counted.requests[static_cast<std::size_t>(verb)]; };
  store::StoreFigures out;
  out.requests_get = requests(Verb::kGet);
  out.requests_put = requests(Verb::kPut);
  out.requests_head = requests(Verb::kHead);
  out.requests_list = requests(Verb::kList);
  out.requests_delete = requests(Verb::kDelete) + requests(Verb::kDeleteMany);
  out.bytes_read = counted.bytes_read;
  out.bytes_written = counted.bytes_written;
  out.retries = counted.retries;
  out.hedges = counted.hedges;
  out.hedge_bytes = counted.hedged_bytes;
  return out;
}

S3Stats S3Store::stats(TimePoint now) const {
  S3Stats out;
  core_->counters.copy_to(out);
  core_->policies.copy_to(out, now);
  out.clock_offset_s = core_->clock_offset_s.load(std::memory_order_relaxed);
  out.region = core_->region();
  return out;
}

}  // namespace objectcache::store_s3
