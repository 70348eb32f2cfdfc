#pragma once

#include <memory>
#include <string>

#include "base/event_loop.h"
#include "objectcache/error.h"

namespace objectcache::http {

/// The real EventLoop: one thread that waits for sockets, timers and posted tasks.
///
/// Start as many as there should be I/O threads. Everything that belongs to a reactor (pools,
/// operations) is used on its thread only, and must be destroyed before the reactor.
///
/// Ending: stop() lets the task that is running finish, runs no other, and joins the thread. From
/// then on the thread that called stop() counts as the owner, so that it may destroy what belonged
/// to the loop. What was posted or due later never runs; it is destroyed by ~Reactor (which calls
/// stop()), without being called. So a completion that must be heard is waited for before stop():
/// the reactor does not invent it.
///
/// Threads: post(), now(), is_owner_thread() from any, also after stop(); run_at() and
/// cancel_timer() from the owner; stop() and destruction from any thread but the reactor's own.
/// Limits: none of its own; whoever posts bounds what it posts.
class Reactor final : public EventLoop {
 public:
  struct Options {
    std::string thread_name = "oc-reactor";  ///< As the system shows it; cut to 15 bytes.
  };
  /// Fails with kLimitExceeded where the system gives no thread or no descriptor.
  [[nodiscard]] static Result<std::unique_ptr<Reactor>> start(Options options);
  [[nodiscard]] static Result<std::unique_ptr<Reactor>> start() { return start(Options{}); }

  ~Reactor() override;
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  [[nodiscard]] TimePoint now() const override;
  void post(Task task) override;
  TimerId run_at(TimePoint when, Task task) override;
  bool cancel_timer(TimerId timer) override;
  [[nodiscard]] bool is_owner_thread() const override;

  /// Harmless when repeated.
  void stop();

 private:
  friend struct ReactorAccess;
  struct Impl;
  explicit Reactor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace objectcache::http
