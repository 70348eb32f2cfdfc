#include "store/s3/credential_source.h"

#include <utility>

namespace objectcache::store_s3 {
namespace {

constexpr Duration kPauseAfterFailure = std::chrono::seconds(1);

}  // namespace

struct FetchedCredentials::State : std::enable_shared_from_this<State> {
  struct Waiter {
    EventLoop* loop;
    Completion done;
  };

  State(std::shared_ptr<const WallClock> wall_clock, Fetch fetch_function)
      : wall(std::move(wall_clock)), fetch(std::move(fetch_function)) {}

  [[nodiscard]] bool usable() const {
    return credentials && (!credentials->expires_at || *credentials->expires_at > wall->now());
  }
  [[nodiscard]] bool ends_soon() const {
    return credentials && credentials->expires_at &&
           *credentials->expires_at - wall->now() < kRefreshBeforeEnd;
  }

  void start(EventLoop& loop) {
    auto handle = fetch(loop, [weak = weak_from_this(), &loop](Result<s3::Credentials> result) {
      const auto self = weak.lock();
      if (!self) return;
      self->finished(std::move(result), loop.now() + kPauseAfterFailure);
      // The completion comes from inside the fetch, which must not vanish under its own feet.
      loop.post([handle = self->take_running()] {});
    });
    const std::lock_guard lock(mutex);
    running = std::move(handle);
    running_on = &loop;
  }

  std::shared_ptr<void> take_running() {
    const std::lock_guard lock(mutex);
    running_on = nullptr;
    return std::move(running);
  }

  void finished(Result<s3::Credentials> result, TimePoint next_at) {
    std::vector<Waiter> ready;
    Result<CredentialsPtr> answer;
    {
      const std::lock_guard lock(mutex);
      fetching = false;
      if (result) {
        credentials = std::make_shared<const s3::Credentials>(std::move(*result));
        failure.reset();
        answer = credentials;
      } else {
        failure = result.error();
        retry_at = next_at;
        answer = std::unexpected(std::move(result.error()));
      }
      ready.swap(waiters);
    }
    for (Waiter& waiter : ready) {
      waiter.loop->post([done = std::move(waiter.done), answer]() mutable { done(answer); });
    }
  }

  const std::shared_ptr<const WallClock> wall;
  const Fetch fetch;
  std::mutex mutex;  // guards what follows
  CredentialsPtr credentials;
  std::optional<Error> failure;
  TimePoint retry_at{};
  bool fetching = false;
  std::shared_ptr<void> running;  // the fetch
  EventLoop* running_on = nullptr;
  std::vector<Waiter> waiters;
};

FetchedCredentials::FetchedCredentials(std::shared_ptr<const WallClock> wall, Fetch fetch)
    : state_(std::make_shared<State>(std::move(wall), std::move(fetch))) {}

FetchedCredentials::~FetchedCredentials() = default;

void FetchedCredentials::get(EventLoop& loop, Completion done) {
  State& state = *state_;
  std::optional<Result<CredentialsPtr>> at_hand;
  bool start = false;
  {
    const std::lock_guard lock(state.mutex);
    const bool may_fetch = !state.fetching && (!state.failure || loop.now() >= state.retry_at);
    if (state.usable()) {
      at_hand = state.credentials;
      start = may_fetch && state.ends_soon();
    } else if (!state.fetching && !may_fetch) {
      at_hand = std::unexpected(*state.failure);
    } else if (state.waiters.size() >= kWaitersMax) {
      at_hand = fail(ErrorCode::kLimitExceeded, "too many requests wait for credentials");
    } else {
      state.waiters.push_back({&loop, std::move(done)});
      start = may_fetch;
    }
    if (start) state.fetching = true;
  }
  if (start) state.start(loop);
  if (at_hand) done(std::move(*at_hand));
}

void FetchedCredentials::leave(EventLoop& loop) {
  std::shared_ptr<void> handle;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->running_on != &loop) return;
    handle = std::move(state_->running);
    state_->running_on = nullptr;
  }
  handle.reset();
  state_->finished(fail(ErrorCode::kCancelled, "the store is being closed"), loop.now());
}

bool FetchedCredentials::renew(const CredentialsPtr& refused) {
  const std::lock_guard lock(state_->mutex);
  // Another request may have brought new ones already.
  if (state_->credentials == refused) state_->credentials = nullptr;
  return true;
}

}  // namespace objectcache::store_s3
