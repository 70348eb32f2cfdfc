#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http/address_book.h"
#include "http/connection.h"
#include "http/connection_pool.h"
#include "http/reactor.h"
#include "http/request_head.h"
#include "http/tls.h"

namespace objectcache::http {

// What a ConnectionPool is made of. Only connection_pool.cc includes this.

/// One request from send() to on_end: it waits, is given a connection, maybe goes back to waiting
/// once.
class PoolExchange final : public Exchange,
                           public ResponseSink,
                           public std::enable_shared_from_this<PoolExchange> {
 public:
  PoolExchange(std::weak_ptr<PoolCore> pool, Request request, std::string head,
               ExchangeOptions options, std::shared_ptr<ResponseSink> sink)
      : pool_(std::move(pool)),
        request_(std::move(request)),
        head_(std::move(head)),
        options_(options),
        sink_(std::move(sink)) {}

  void cancel() override;
  void grant(std::uint64_t bytes) override {
    const bool overflows = options_.grant_bytes > UINT64_MAX - bytes;
    options_.grant_bytes = overflows ? UINT64_MAX : options_.grant_bytes + bytes;
    if (connection_) connection_->grant(bytes);
  }

  BodyPlan on_head(const ResponseHead& head) override { return sink_->on_head(head); }
  void on_body(std::uint64_t bytes) override { sink_->on_body(bytes); }
  void on_end(Result<std::string> result) override;

  void run_on(std::shared_ptr<Connection> connection, bool kept) {
    connection_ = std::move(connection);
    kept_ = kept;
    connection_->start(request_, head_, options_, shared_from_this());
  }
  /// Ends it while it waits. on_end comes from a task of its own.
  void end_later(EventLoop& loop, Error error) {
    loop.post([sink = std::move(sink_), error = std::move(error)]() mutable {
      sink->on_end(std::unexpected(std::move(error)));
    });
  }

  [[nodiscard]] TimePoint deadline() const { return options_.deadline; }
  [[nodiscard]] bool needs_fresh() const { return resent_; }

  // Used by the pool while the exchange waits.
  TimerId timer = TimerId::kNone;
  std::uint64_t failures_before = 0;  ///< The pool's count of failed connects when it came.
  std::list<std::shared_ptr<PoolExchange>>::iterator place;
  bool waiting = false;

 private:
  friend struct PoolCore;
  std::weak_ptr<PoolCore> pool_;
  Request request_;
  std::string head_;
  ExchangeOptions options_;
  std::shared_ptr<ResponseSink> sink_;
  std::shared_ptr<Connection> connection_;
  bool kept_ = false;  ///< The connection served an exchange, or idled, before.
  bool resent_ = false;
  bool cancelled_ = false;
};

struct PoolCore final : public ConnectionOwner, public std::enable_shared_from_this<PoolCore> {
  PoolCore(Reactor& r, ConnectionPool::Options o)
      : reactor(r),
        options(std::move(o)),
        resolver(r),
        addresses({.avoid_min = options.avoid_min, .avoid_max = options.avoid_max}) {}

  struct Member {
    std::shared_ptr<Connection> connection;
    TimePoint since;  ///< Opening began, or idle since.
    bool opening = true;
    bool slow = false;  ///< Opening, for longer than kSlowConnect.
    bool idle = false;
    bool kept = false;  ///< Waited or worked before, so the server may have closed it meanwhile.
    std::uint64_t bytes_in_seen = 0;
    std::uint64_t bytes_out_seen = 0;
  };

  Reactor& reactor;
  ConnectionPool::Options options;
  std::shared_ptr<TlsContext> tls;
  Resolver resolver;
  bool closed = false;

  AddressBook addresses;
  std::optional<TimePoint> resolved_at;
  TimerId resolve_timer = TimerId::kNone;
  std::unordered_map<const Connection*, Member> members;
  std::vector<Connection*> idle;  ///< The one used last is at the back, and used next.
  std::uint32_t opening = 0;
  std::uint32_t opening_slow = 0;
  std::list<std::shared_ptr<PoolExchange>> queue;
  std::uint32_t warm_target = 0;
  TimerId sweep_timer = TimerId::kNone;
  TimerId slow_timer = TimerId::kNone;
  std::uint64_t connect_failures = 0;
  ConnectionPool::Stats counts;

  void enqueue(const std::shared_ptr<PoolExchange>& exchange, bool front);
  std::shared_ptr<PoolExchange> dequeue(std::list<std::shared_ptr<PoolExchange>>::iterator it);
  void pump();
  bool may_open() const;
  bool serve_idle();
  void give(Connection& connection);
  void open_one();
  void fail_queue(const Error& why);
  void fail_hopeless(const Error& why);

  void resolve_if_needed();
  void resolved(Result<std::vector<SocketAddress>> found);

  void connection_ready(Connection& connection) override;
  void connection_closed(Connection& connection, const Error& why) override;
  void account(Member& member);
  void drop_idle(Connection& connection);
  void forget(Member& member);
  void set_sweep();
  void sweep();
  void set_slow_timer();
  void notice_slow();
  void shut_down();
};

}  // namespace objectcache::http
