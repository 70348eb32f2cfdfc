#include "http/connection_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include "http/pool_core.h"

namespace objectcache::http {

namespace {

constexpr Duration kSweepEvery = std::chrono::seconds(1);
/// A connect that takes longer is not waited for: another address is tried beside it.
constexpr Duration kSlowConnect = std::chrono::milliseconds(250);

Error error_of(ErrorCode code, std::string message) {
  return Error{.code = code,
               .message = std::move(message),
               .action = {},
               .key = {},
               .s3_code = {},
               .request_id = {},
               .http_status = 0};
}

bool may_be_sent_twice(const Request& request) {
  return request.idempotent || request.method == "GET" || request.method == "HEAD" ||
         request.method == "DELETE";
}

}  // namespace

// ---------------------------------------------------------------- one exchange

void PoolExchange::cancel() {
  if (cancelled_ || !sink_) return;
  cancelled_ = true;
  if (connection_) return connection_->cancel();
  const auto pool = pool_.lock();
  if (!pool || !waiting) return;
  const auto self = pool->dequeue(place);
  end_later(pool->reactor, error_of(ErrorCode::kCancelled, "cancelled by the caller"));
}

void PoolExchange::on_end(Result<std::string> result) {
  const auto connection = std::move(connection_);
  connection_ = nullptr;
  const auto pool = pool_.lock();
  if (!result && pool && !pool->closed && connection) {
    const auto failure = connection->failure();
    // A host that went away without a word shows like this.
    if (failure == Connection::Failure::kStall) {
      pool->addresses.slow(connection->address(), pool->reactor.now());
    }
    // The server closed the idle connection just as the request went out.
    if (failure == Connection::Failure::kPeer && kept_ && !resent_ && !cancelled_ &&
        !connection->answer_begun() && may_be_sent_twice(request_)) {
      resent_ = true;
      ++pool->counts.resent;
      return pool->enqueue(shared_from_this(), true);
    }
  }
  const auto sink = std::move(sink_);
  sink_ = nullptr;
  sink->on_end(std::move(result));
}

// ---------------------------------------------------------------- the queue

// Puts it in line and sees to it that it is served, or ends by its deadline.
void PoolCore::enqueue(const std::shared_ptr<PoolExchange>& exchange, bool front) {
  exchange->waiting = true;
  exchange->failures_before = connect_failures;
  exchange->place = queue.insert(front ? queue.begin() : queue.end(), exchange);
  pump();
  if (!exchange->waiting) return;
  exchange->timer = reactor.run_at(exchange->deadline(), [this, it = exchange.get()] {
    it->timer = TimerId::kNone;
    const auto late = dequeue(it->place);
    late->end_later(reactor, error_of(ErrorCode::kDeadlineExceeded,
                                      fmt::format("deadline passed while waiting for a connection "
                                                  "to {}",
                                                  options.hosts.front().host)));
  });
}

std::shared_ptr<PoolExchange> PoolCore::dequeue(
    std::list<std::shared_ptr<PoolExchange>>::iterator it) {
  auto exchange = std::move(*it);
  queue.erase(it);
  exchange->waiting = false;
  if (exchange->timer != TimerId::kNone) reactor.cancel_timer(exchange->timer);
  exchange->timer = TimerId::kNone;
  return exchange;
}

// Brings requests and connections together; opens what is missing.
void PoolCore::pump() {
  if (closed) return;
  while (!queue.empty() && !idle.empty() && serve_idle()) {
  }
  const auto wanted = [this] {
    return opening - opening_slow < queue.size() || members.size() < warm_target;
  };
  if (!wanted()) return;
  resolve_if_needed();
  while (members.size() < options.connections_max && wanted() && may_open()) open_one();
  set_slow_timer();
}

// While all addresses fail, one attempt at a time finds out whether that is still so, and none as
// long as there are connections at work that will serve those who wait.
bool PoolCore::may_open() const {
  if (addresses.any_good(reactor.now())) return true;
  return addresses.size() > 0 && opening == 0 && members.size() == idle.size();
}

// False: the first request cannot use what is there.
bool PoolCore::serve_idle() {
  if (queue.front()->needs_fresh()) {
    // Kept connections have just proved stale: only one that has not served yet will do.
    const auto fresh =
        std::ranges::find_if(idle, [this](Connection* c) { return !members.at(c).kept; });
    if (fresh == idle.end()) return false;
    Connection& connection = **fresh;
    idle.erase(fresh);
    give(connection);
    return true;
  }
  Connection& connection = *idle.back();
  if (connection.spoiled()) {
    drop_idle(connection);
    return true;
  }
  idle.pop_back();
  give(connection);
  return true;
}

void PoolCore::give(Connection& connection) {
  Member& member = members.at(&connection);
  const bool kept = std::exchange(member.kept, true);
  member.idle = false;
  ++counts.exchanges;
  if (kept) ++counts.exchanges_on_warm;
  const auto exchange = dequeue(queue.begin());
  exchange->run_on(member.connection, kept);
}

void PoolCore::fail_queue(const Error& why) {
  while (!queue.empty()) dequeue(queue.begin())->end_later(reactor, why);
}

// After a failed connect: ends those for whom nothing is left to hope for.
void PoolCore::fail_hopeless(const Error& why) {
  if (opening > 0) return;
  for (auto it = queue.begin(); it != queue.end();) {
    const auto here = it++;
    const PoolExchange& exchange = **here;
    const bool tried_all = connect_failures - exchange.failures_before >= addresses.size();
    const bool no_other_way = members.empty() || exchange.needs_fresh();
    if (no_other_way && (tried_all || why.code == ErrorCode::kInvalidArgument)) {
      dequeue(here)->end_later(reactor, why);
    }
  }
}

// ---------------------------------------------------------------- addresses

void PoolCore::resolve_if_needed() {
  if (resolver.busy()) return;
  const TimePoint now = reactor.now();
  const Duration age_max =
      addresses.any_good(now) ? options.resolve_again : Duration(std::chrono::seconds(1));
  if (resolved_at && now - *resolved_at < age_max) return;
  resolver.resolve(options.hosts, [this](auto found) { resolved(std::move(found)); });
  // Those known serve meanwhile.
  if (addresses.size() > 0 || resolve_timer != TimerId::kNone) return;
  resolve_timer = reactor.run_at(now + options.resolve_timeout, [this] {
    resolve_timer = TimerId::kNone;
    if (addresses.size() == 0) {
      fail_queue(error_of(ErrorCode::kUnavailable,
                          fmt::format("no answer to the question for the address of host {}",
                                      options.hosts.front().host)));
    }
  });
}

void PoolCore::resolved(Result<std::vector<SocketAddress>> found) {
  if (closed) return;
  if (resolve_timer != TimerId::kNone) reactor.cancel_timer(resolve_timer);
  resolve_timer = TimerId::kNone;
  if (!found) {
    if (addresses.size() == 0) return fail_queue(found.error());
    resolved_at = reactor.now();  // Keep the old ones.
    return;
  }
  resolved_at = reactor.now();
  addresses.replace(*found);
  pump();
}

// ---------------------------------------------------------------- connections

void PoolCore::open_one() {
  const TimePoint now = reactor.now();
  const SocketAddress address = addresses.choose(now);
  addresses.opening(address);
  ++opening;
  auto connection =
      Connection::open(reactor, address,
                       {.host_header = options.host_header,
                        .tls = tls,
                        .tls_name = options.tls_name.empty() ? address.host : options.tls_name,
                        .receive_buffer_bytes = options.receive_buffer_bytes},
                       now + options.connect_timeout, *this);
  const Connection* const key = connection.get();
  members.emplace(key, Member{.connection = std::move(connection), .since = now});
}

void PoolCore::account(Member& member) {
  const auto& counters = member.connection->counters();
  counts.bytes_in += counters.bytes_in - std::exchange(member.bytes_in_seen, counters.bytes_in);
  counts.bytes_out += counters.bytes_out - std::exchange(member.bytes_out_seen, counters.bytes_out);
}

// It has become ready, or is gone: either way it is not being opened any more.
void PoolCore::forget(Member& member) {
  if (!std::exchange(member.opening, false)) return;
  --opening;
  if (std::exchange(member.slow, false)) --opening_slow;
}

void PoolCore::connection_ready(Connection& connection) {
  Member& member = members.at(&connection);
  const TimePoint now = reactor.now();
  if (member.opening) {
    forget(member);
    ++counts.connections_opened;
    counts.connect_time += now - member.since;
    if (connection.counters().tls_session_reused) ++counts.tls_sessions_reused;
    addresses.worked(connection.address());
  }
  account(member);
  member.idle = true;
  member.since = now;
  idle.push_back(&connection);
  pump();
  const auto it = members.find(&connection);
  if (it == members.end() || !it->second.idle) return;
  it->second.kept = true;
  set_sweep();
}

void PoolCore::connection_closed(Connection& connection, const Error& why) {
  const auto it = members.find(&connection);
  assert(it != members.end());
  const auto keep = it->second.connection;  // The caller is inside it.
  const bool failed = it->second.opening;
  account(it->second);
  forget(it->second);
  if (it->second.idle) std::erase(idle, &connection);
  members.erase(it);
  addresses.closed(connection.address());
  if (failed) {
    ++counts.connections_failed;
    ++connect_failures;
    warm_target = 0;  // A wish, not worth a second try.
    addresses.failed(connection.address(), reactor.now());
    fail_hopeless(why);
  }
  pump();
}

void PoolCore::drop_idle(Connection& connection) {
  const auto it = members.find(&connection);
  std::erase(idle, &connection);
  account(it->second);
  addresses.closed(connection.address());
  const auto keep = std::move(it->second.connection);
  members.erase(it);
  keep->abandon();
}

// Looks again while a connect takes its time, or while all addresses are being avoided.
void PoolCore::set_slow_timer() {
  const bool opening_still = opening > opening_slow && addresses.size() > 1;
  const bool held_back = !queue.empty() && addresses.size() > 0 && !may_open();
  if (slow_timer != TimerId::kNone || (!opening_still && !held_back)) return;
  slow_timer = reactor.run_at(reactor.now() + kSlowConnect, [this] {
    slow_timer = TimerId::kNone;
    notice_slow();
  });
}

void PoolCore::notice_slow() {
  const TimePoint now = reactor.now();
  for (auto& [key, member] : members) {
    if (!member.opening || member.slow || now - member.since < kSlowConnect / 2) continue;
    member.slow = true;
    ++opening_slow;
    addresses.slow(member.connection->address(), now);
  }
  pump();
}

void PoolCore::set_sweep() {
  if (sweep_timer != TimerId::kNone || idle.empty() || closed) return;
  sweep_timer = reactor.run_at(reactor.now() + std::min(kSweepEvery, options.idle_timeout), [this] {
    sweep_timer = TimerId::kNone;
    sweep();
  });
}

// Idle connections are watched by looking now and then, which costs nothing while they are busy.
void PoolCore::sweep() {
  const TimePoint now = reactor.now();
  const std::vector<Connection*> all = idle;
  for (Connection* const connection : all) {
    if (now - members.at(connection).since >= options.idle_timeout || connection->spoiled()) {
      drop_idle(*connection);
    }
  }
  set_sweep();
}

void PoolCore::shut_down() {
  closed = true;
  for (const TimerId timer : {resolve_timer, sweep_timer, slow_timer}) {
    if (timer != TimerId::kNone) reactor.cancel_timer(timer);
  }
  fail_queue(error_of(ErrorCode::kCancelled, "the connections are being closed"));
  idle.clear();
  auto all = std::move(members);
  members.clear();
  for (auto& [key, member] : all) member.connection->abandon();
}

// ---------------------------------------------------------------- the pool

ConnectionPool::ConnectionPool(std::shared_ptr<PoolCore> core) : core_(std::move(core)) {}
ConnectionPool::~ConnectionPool() { core_->shut_down(); }

Result<std::unique_ptr<ConnectionPool>> ConnectionPool::create(Reactor& reactor, Options options) {
  const auto bad = [](std::string what) {
    return fail(ErrorCode::kInvalidArgument, std::move(what), "open connections");
  };
  if (options.hosts.empty()) return bad("no host given");
  for (const HostPort& host : options.hosts) {
    if (host.host.empty()) return bad("a host's name is empty");
    if (host.port == 0) return bad(fmt::format("host {} has no port", host.host));
  }
  if (options.connections_max == 0) return bad("connections_max must be at least 1");
  if (options.queue_max == 0) return bad("queue_max must be at least 1");
  if (options.host_header.empty()) {
    const HostPort& first = options.hosts.front();
    const bool v6 = first.host.find(':') != std::string::npos;
    options.host_header = v6 ? "[" + first.host + "]" : first.host;
    if (first.port != (options.tls ? 443 : 80)) {
      options.host_header += fmt::format(":{}", first.port);
    }
  }
  std::shared_ptr<TlsContext> tls;
  if (options.tls) {
    auto made =
        TlsContext::create_client({.ca_file = options.ca_file, .insecure = options.insecure});
    if (!made) return std::unexpected(std::move(made).error());
    tls = std::move(*made);
  }
  auto core = std::make_shared<PoolCore>(reactor, std::move(options));
  core->tls = std::move(tls);
  return std::unique_ptr<ConnectionPool>(new ConnectionPool(std::move(core)));
}

std::shared_ptr<Exchange> ConnectionPool::send(Request request, ExchangeOptions options,
                                               std::shared_ptr<ResponseSink> sink) {
  PoolCore& self = *core_;
  assert(self.reactor.is_owner_thread());
  auto head = write_request_head(request, self.options.host_header);
  const bool sendable = head.has_value();
  auto exchange = std::make_shared<PoolExchange>(core_, std::move(request),
                                                 sendable ? std::move(*head) : std::string(),
                                                 options, std::move(sink));
  if (!sendable) {
    exchange->end_later(self.reactor, std::move(head).error());
    return exchange;
  }
  if (self.reactor.now() >= options.deadline) {
    exchange->end_later(self.reactor, error_of(ErrorCode::kDeadlineExceeded,
                                               "the deadline had passed before the request"));
    return exchange;
  }
  if (self.queue.size() >= self.options.queue_max && self.idle.empty()) {
    ++self.counts.queue_refusals;
    exchange->end_later(
        self.reactor,
        error_of(ErrorCode::kLimitExceeded,
                 fmt::format("{} requests wait for a connection to {} already (queue_max)",
                             self.queue.size(), self.options.hosts.front().host)));
    return exchange;
  }
  self.enqueue(exchange, false);
  return exchange;
}

void ConnectionPool::warm(std::uint32_t connections) {
  core_->warm_target = std::min(connections, core_->options.connections_max);
  core_->pump();
}

ConnectionPool::Stats ConnectionPool::stats() const {
  const PoolCore& self = *core_;
  Stats out = self.counts;
  for (const auto& [key, member] : self.members) {
    out.bytes_in += member.connection->counters().bytes_in - member.bytes_in_seen;
    out.bytes_out += member.connection->counters().bytes_out - member.bytes_out_seen;
  }
  out.now_connections = static_cast<std::uint32_t>(self.members.size());
  out.now_idle = static_cast<std::uint32_t>(self.idle.size());
  out.now_queued = static_cast<std::uint32_t>(self.queue.size());
  out.now_addresses = static_cast<std::uint32_t>(self.addresses.size());
  out.now_avoided = static_cast<std::uint32_t>(self.addresses.avoided(self.reactor.now()));
  return out;
}

}  // namespace objectcache::http
