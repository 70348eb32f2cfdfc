#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "objectcache/error.h"
#include "s3/credentials.h"

namespace objectcache::store_s3 {

/// Null: requests are not signed.
using CredentialsPtr = std::shared_ptr<const s3::Credentials>;

/// Hands credentials to requests, and waits for a fetch where there are none yet.
///
/// Threads: any.
class CredentialSource {
 public:
  using Completion = std::move_only_function<void(Result<CredentialsPtr>)>;

  virtual ~CredentialSource() = default;
  /// Owner thread of `loop`. `done` is called exactly once: from inside this call where credentials
  /// are at hand, else later on `loop`, at the latest when a fetch of some seconds has failed.
  virtual void get(EventLoop& loop, Completion done) = 0;
  /// Owner thread of `loop`, which ends: stops what runs there.
  virtual void leave(EventLoop& loop) { static_cast<void>(loop); }
  /// The store said that `refused` has expired or is unknown. True: get() may bring others.
  [[nodiscard]] virtual bool renew(const CredentialsPtr& refused) = 0;
};

/// Given once: by an option, the environment or a file. Null for unsigned requests.
class FixedCredentials final : public CredentialSource {
 public:
  explicit FixedCredentials(CredentialsPtr credentials) : credentials_(std::move(credentials)) {}
  void get(EventLoop&, Completion done) override { done(credentials_); }
  [[nodiscard]] bool renew(const CredentialsPtr&) override { return false; }

 private:
  const CredentialsPtr credentials_;
};

/// Short-lived credentials from a service. Fetched when first asked for; from some minutes before
/// their end on fetched anew in the background, while the old ones are still handed out. At most
/// one fetch runs at a time; after a failed one the next waits a second.
///
/// Limits: `kWaitersMax` requests wait for a fetch; more are refused with kLimitExceeded.
class FetchedCredentials final : public CredentialSource {
 public:
  static constexpr std::size_t kWaitersMax = 16'384;
  static constexpr std::chrono::seconds kRefreshBeforeEnd = std::chrono::minutes(5);

  using FetchCompletion = std::move_only_function<void(Result<s3::Credentials>)>;
  /// Starts a fetch on `loop`. Its completion comes there, once, never from inside; not any more
  /// once what it returned has been destroyed, on that loop's thread.
  using Fetch = std::function<std::shared_ptr<void>(EventLoop& loop, FetchCompletion done)>;

  /// Loops must outlive their waiting requests.
  FetchedCredentials(std::shared_ptr<const WallClock> wall, Fetch fetch);
  ~FetchedCredentials() override;

  void get(EventLoop& loop, Completion done) override;
  void leave(EventLoop& loop) override;
  [[nodiscard]] bool renew(const CredentialsPtr& refused) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace objectcache::store_s3
