#include "cache/cache_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "cache/match_task.h"
#include "cache/prefix_writer.h"
#include "cache/prove_task.h"
#include "http/reactor.h"
#include "sched/earliest_due_first.h"
#include "stream/layer_stream_impl.h"

namespace objectcache::cache {
namespace {

/// Tasks end at their own deadline, with what they know by then: waiting a little longer than that
/// is what makes their answer arrive.
constexpr Duration kGrace = std::chrono::seconds(10);
constexpr Duration kRemoveTimeout = std::chrono::seconds(30);
constexpr std::uint32_t kMarksMax = 4096;

Result<void> check_range(std::string_view name, std::uint64_t value, std::uint64_t least,
                         std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return fail(ErrorCode::kInvalidArgument, fmt::format("{} is not in [{}, {}]", value, least, most),
              "open cache", std::string(name));
}

Result<void> check(const CacheOptions& o) {
  constexpr std::uint64_t kMany = 1U << 20;
  if (const auto problem = format::tenant_problem(o.tenant)) {
    return fail(ErrorCode::kInvalidArgument, *problem, "open cache", "tenant");
  }
  const std::pair<std::string_view, std::uint32_t> counts[] = {
      {"streams_max", o.streams_max},
      {"requests_in_flight_max", o.requests_in_flight_max},
      {"stream_connections_max", o.stream_connections_max},
      {"writes_in_flight_max", o.writes_in_flight_max},
      {"match_probes_max", o.match_probes_max},
  };
  for (const auto& [name, value] : counts) {
    if (auto ok = check_range(name, value, 1, kMany); !ok) return ok;
  }
  if (auto ok = check_range("read_memory_bytes", o.read_memory_bytes, 1, UINT64_MAX); !ok)
    return ok;
  if (auto ok = check_range("reactor_threads", o.reactor_threads, 1, CacheCore::kReactorsMax);
      !ok) {
    return ok;
  }
  const auto ttl = o.negative_cache_ttl.count();
  if (ttl < 0 || o.negative_cache_ttl > PresenceCache::kNegativeTtlMax) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{} ms is not in [0, 1000]", ttl),
                "open cache", "negative_cache_ttl");
  }
  return {};
}

sched::EarliestDueFirst::Options admission_options(const CacheOptions& options) {
  sched::EarliestDueFirst::Options out;
  out.streams_max = options.streams_max;
  out.requests_in_flight_max = options.requests_in_flight_max;
  return out;
}

std::vector<ChunkKey> copy(std::span<const ChunkKey> chunks) {
  return {chunks.begin(), chunks.end()};
}

}  // namespace

CacheCore::CacheCore(CacheOptions options)
    : options_(std::move(options)),
      presence_({.entries_max = options_.match_cache_entries_max,
                 .negative_ttl = options_.negative_cache_ttl}),
      bad_objects_(kMarksMax, ChunkMarks::kBadTtl),
      lost_(kMarksMax, ChunkMarks::kLostTtl),
      read_memory_({.capacity_bytes = options_.read_memory_bytes}),
      write_memory_(ChunkBufferPool::create(options_.write_memory_bytes)),
      admission_(std::make_unique<sched::EarliestDueFirst>(admission_options(options_))) {}

CacheCore::~CacheCore() { close(); }

Result<std::shared_ptr<CacheCore>> CacheCore::create(CacheOptions options,
                                                     StoreFactory open_store) {
  if (auto ok = check(options); !ok) return std::unexpected(std::move(ok.error()));
  std::shared_ptr<CacheCore> core(new CacheCore(std::move(options)));
  if (auto ok = core->start(std::move(open_store)); !ok) {
    return std::unexpected(std::move(ok.error()));
  }
  return core;
}

Result<void> CacheCore::start(StoreFactory open_store) {
  auto store = open_store();
  if (!store) return std::unexpected(std::move(store.error()));
  store_ = std::make_unique<CountingStore>(std::move(*store), counters_);
  traits_ = store_->traits();
  const std::uint32_t slots = std::max(options_.match_probes_max,
                                       options_.requests_in_flight_max / options_.reactor_threads);
  std::vector<EventLoop*> loops;
  lanes_.reserve(options_.reactor_threads);
  for (std::uint32_t i = 0; i < options_.reactor_threads; ++i) {
    auto reactor = http::Reactor::start();
    if (!reactor) return std::unexpected(std::move(reactor.error()));
    loops.push_back(reactor->get());
    lanes_.push_back({.reactor = std::move(*reactor),
                      .loop = loops.back(),
                      .slots = std::make_unique<RequestSlots>(slots)});
  }
  publisher_ = std::make_unique<Publisher>(
      Publisher::Parts{.loops = std::move(loops),
                       .store = *store_,
                       .wall_clock = wall_clock_,
                       .presence = presence_,
                       .bad_objects = bad_objects_},
      Publisher::Options{.writes_in_flight_max = options_.writes_in_flight_max});
  return {};
}

// In the order in which one thing may still call the next: nothing new comes in, what runs is told
// to end, and only when all of it has, the threads and the store go.
void CacheCore::close() {
  const std::scoped_lock closing(close_mutex_);
  if (closed_) return;
  closed_ = true;
  gate_.close();
  if (publisher_) publisher_->shut_down();
  running_.cancel_all();
  std::vector<std::shared_ptr<LayerStream::Impl>> handles;
  {
    const std::scoped_lock lock(mutex_);
    for (const OpenStream& stream : streams_) {
      if (auto handle = stream.handle.lock()) handles.push_back(std::move(handle));
    }
  }
  for (const auto& handle : handles) handle->task().request_cancel();
  handles.clear();
  // Each of these ends by the promise of the stores: a cancelled operation completes. There is no
  // way on before: memory of ours and of the caller's is in use until then.
  const auto wait = [](auto&& is_over) {
    while (!is_over(std::chrono::steady_clock::now() + std::chrono::hours(1))) {
    }
  };
  wait([&](TimePoint until) { return gate_.wait_drained(until); });
  if (publisher_) wait([&](TimePoint until) { return publisher_->wait_idle(until); });
  if (store_) wait([&](TimePoint until) { return store_->wait_idle(until); });
  run_what_is_posted();
  for (Lane& lane : lanes_) lane.reactor->stop();
  const std::scoped_lock lock(mutex_);
  if (store_) last_figures_ = store_->figures();
  store_.reset();
}

// A stopped loop keeps what it did not run. The cancel of a stream that had ended is such a task, and
// it keeps the stream, which keeps this core, which keeps the loop.
void CacheCore::run_what_is_posted() {
  std::mutex mutex;
  std::condition_variable all_ran;
  std::size_t left = lanes_.size();
  for (Lane& lane : lanes_) {
    lane.loop->post([&] {
      const std::scoped_lock lock(mutex);
      if (--left == 0) all_ran.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  all_ran.wait(lock, [&] { return left == 0; });
}

Result<void> CacheCore::may_wait(std::string_view action) const {
  for (const Lane& lane : lanes_) {
    // A stopped loop counts as owned by whoever stopped it: the gate refuses then.
    if (lane.loop->is_owner_thread() && !gate_.closed()) {
      return fail(ErrorCode::kInvalidArgument, "a thread of the cache itself must not wait for it",
                  std::string(action));
    }
  }
  return {};
}

std::unexpected<Error> CacheCore::closed(std::string_view action) {
  return fail(ErrorCode::kCancelled, "the cache was closed", std::string(action));
}

Result<std::shared_ptr<const NamespaceState>> CacheCore::open_namespace(NamespaceSpec spec,
                                                                        Shard shard) {
  if (gate_.closed()) return closed("open namespace");
  const auto digest = namespace_digest(spec);
  if (!digest) return std::unexpected(digest.error());
  const std::scoped_lock lock(mutex_);
  const auto found = spaces_.find({*digest, shard});
  if (found == spaces_.end() && spaces_.size() >= kNamespacesMax) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("this cache has seen {} namespaces; open another one", kNamespacesMax),
                "open namespace");
  }
  ScopeId scope{static_cast<std::uint32_t>(spaces_.size())};
  if (found != spaces_.end()) {
    if (auto known = found->second.second.lock()) return known;
    scope = found->second.first;
  }
  auto made = NamespaceState::create(std::move(spec), shard, options_.tenant, scope);
  if (made) spaces_[{*digest, shard}] = {scope, *made};
  return made;
}

Result<Match> CacheCore::match(const Space& space, std::span<const ChunkKey> chunks,
                               TimePoint deadline, std::optional<std::uint32_t> hint) {
  deadline = std::min(deadline, now() + kWaitMax);
  return run<Match>("match", deadline + kGrace,
                    [&](Lane& lane, store::ObjectStore& store,
                        std::move_only_function<void(Result<Match>)> done) {
                      return MatchTask::start({.loop = *lane.loop,
                                               .store = store,
                                               .slots = *lane.slots,
                                               .presence = presence_,
                                               .bad_objects = bad_objects_,
                                               .lost = lost_,
                                               .counters = counters_},
                                              {.space = space,
                                               .chunks = copy(chunks),
                                               .probes_max = options_.match_probes_max,
                                               .hint = hint,
                                               .deadline = deadline},
                                              std::move(done));
                    });
}

Result<Proof> CacheCore::prove(const Space& space, std::span<const ChunkKey> chunks,
                               TimePoint deadline) {
  deadline = std::min(deadline, now() + kWaitMax);
  auto answer = run<ProveTask::Answer>(
      "prove", deadline + kGrace,
      [&](Lane& lane, store::ObjectStore& store,
          std::move_only_function<void(Result<ProveTask::Answer>)> done) {
        return ProveTask::start({.loop = *lane.loop, .store = store, .slots = *lane.slots},
                                {.space = space,
                                 .chunks = copy(chunks),
                                 .requests_max = options_.match_probes_max,
                                 .deadline = deadline},
                                [this, space, chunks, loop = lane.loop,
                                 done = std::move(done)](ProveTask::Answer found) mutable {
                                  for (std::uint32_t i = 0; i < found.proof.chunks; ++i) {
                                    presence_.remember(space->id(chunks[i]), true, loop->now());
                                  }
                                  if (found.missing) on_lost(*space, chunks[*found.missing]);
                                  if (found.bad) on_bad(space, chunks[*found.bad], *loop);
                                  done(std::move(found));
                                });
      });
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (answer->proof.chunks == 0 && answer->error && !answer->bad &&
      answer->error->code != ErrorCode::kDeadlineExceeded) {
    return std::unexpected(std::move(*answer->error));
  }
  return answer->proof;
}

void CacheCore::forget(const Space& space, std::span<const ChunkKey> chunks) {
  for (const ChunkKey& key : chunks) presence_.forget(space->id(key));
}

Result<PrefixWriter> CacheCore::open_writer(const Space& space, std::span<const UnitKey> unit_keys,
                                            std::uint32_t first_chunk) {
  if (gate_.closed()) return closed("open writer");
  if (unit_keys.size() > plan::PrefixSearch::kCountMax) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{} units are too many for one prefix", unit_keys.size()),
                "open writer");
  }
  return PrefixWriter(std::make_shared<PrefixWriter::Impl>(
      PrefixWriter::Impl::Parts{.space = space,
                                .pool = write_memory_,
                                .publisher = *publisher_,
                                .counters = counters_,
                                .keep_alive = shared_from_this()},
      unit_keys, first_chunk));
}

Result<LayerStream> CacheCore::open_stream(const Space& space, ReadRequest request) {
  auto pass = gate_.enter();
  if (!pass) return closed("open stream");
  const stream::StreamOptions options{.connections_default = options_.stream_connections_max};
  const auto plan =
      plan::plan_read(stream::read_job(space->layout, request),
                      speed_.character(request.connections_max == 0 ? options.connections_default
                                                                    : request.connections_max),
                      {.mode = stream::plan_mode(request.mode)});
  if (!plan) return std::unexpected(plan.error());

  // The stream keeps the core, so that a handle that outlives the Cache finds its (stopped) loop.
  struct Source {
    std::shared_ptr<CacheCore> core;
    stream::ChunkSource chunks;
  };
  const auto source = std::make_shared<const Source>(
      shared_from_this(),
      stream::ChunkSource{space->layout, space->names, space->digest, space->shard});
  const auto chunks = std::make_shared<const std::vector<ChunkKey>>(request.chunks);
  Lane& lane = next_lane();
  stream::StreamEvents events;
  events.on_bad_object = [this, space, chunks, &lane](std::uint32_t chunk, const Error&) {
    on_bad(space, (*chunks)[chunk], *lane.loop);
  };
  events.on_failure = [this, space, chunks](const StreamFailure& failure) {
    on_stream_failure(*space, *chunks, failure);
  };
  events.on_ended = [this, pass = std::move(*pass)](const StreamStats& stats,
                                                    const std::optional<StreamFailure>& failure) {
    if (!failure) speed_.learn(stats);
  };
  auto opened = stream::open_stream(
      {.loop = *lane.loop, .store = *store_, .admission = admission_, .memory = read_memory_},
      options, std::shared_ptr<const stream::ChunkSource>(source, &source->chunks),
      std::move(request), *plan, std::move(events));
  if (!opened) return opened;
  ++counters_.streams_opened;
  add_stream(*opened);
  if (gate_.closed()) opened->cancel();  // close() may have looked for streams before.
  return opened;
}

void CacheCore::add_stream(const LayerStream& stream) {
  const std::scoped_lock lock(mutex_);
  if (streams_.size() >= sweep_streams_at_) {
    fold_ended_streams();
    sweep_streams_at_ = std::max<std::size_t>(64, streams_.size() * 2);
  }
  streams_.push_back({.handle = stream.impl(), .state = stream.impl()->task().state()});
}

// Waits are counted when their handle is gone: a waiter may wake after its stream has ended.
void CacheCore::fold_ended_streams() {
  std::erase_if(streams_, [this](const OpenStream& stream) {
    if (!stream.handle.expired()) return false;
    counters_.add_layer_waits(stream.state->stats().layer_waited);
    return true;
  });
}

// A failed read forgets what it disproves before the caller hears of it: else the next match would
// promise the same again.
void CacheCore::on_stream_failure(const NamespaceState& space, const std::vector<ChunkKey>& chunks,
                                  const StreamFailure& failure) {
  if (failure.error.code == ErrorCode::kCancelled) return;
  ++counters_.streams_failed;
  // A store's own failures are counted where they happen.
  if (failure.chunk) counters_.count_error(failure.error.code);
  if (failure.chunk && failure.error.code == ErrorCode::kNotFound) {
    on_lost(space, chunks[*failure.chunk]);
  } else if (failure.chunk) {
    presence_.forget(space.id(chunks[*failure.chunk]));
  }
}

void CacheCore::on_lost(const NamespaceState& space, const ChunkKey& key) {
  presence_.forget(space.id(key));
  lost_.add(space.id(key), now());
}

void CacheCore::on_bad(const Space& space, const ChunkKey& key, EventLoop& loop) {
  ++counters_.corrupt_found;
  presence_.forget(space->id(key));
  bad_objects_.add(space->id(key), loop.now());
  if (options_.delete_bad_objects) remove_bad(space, key, loop);
}

// Only the object with the header is removed: then the chunk does not exist. Layer objects are left,
// for a writer may be storing them anew at this moment; it replaces them in any case.
void CacheCore::remove_bad(const Space& space, const ChunkKey& key, EventLoop& loop) {
  auto pass = gate_.enter();
  if (!pass) return;
  const auto call = store_->remove(
      loop, space->object(key), loop.now() + kRemoveTimeout,
      [this, space, key, pass = std::move(*pass)](Result<void> removed) {
        if (!removed) return;  // The mark stays: a writer will replace the object.
        bad_objects_.forget(space->id(key));
        on_lost(*space, key);
      });
  running_.add(loop, call);
}

CacheStats CacheCore::stats() const {
  CacheStats out;
  std::optional<store::StoreFigures> figures;
  out.layer_wait_total = counters_.layer_wait_total();
  {
    const std::scoped_lock lock(mutex_);
    figures = store_ ? store_->figures() : last_figures_;
    for (const OpenStream& stream : streams_) {
      const auto waited = stream.state->stats().layer_waited;
      auto& total = out.layer_wait_total;
      if (total.size() < waited.size()) total.resize(waited.size());
      for (std::size_t i = 0; i < waited.size(); ++i) total[i] += waited[i];
    }
  }
  if (figures) {
    out.bytes_read = figures->bytes_read;
    out.bytes_written = figures->bytes_written;
    out.requests_get = figures->requests_get;
    out.requests_head = figures->requests_head;
    out.requests_put = figures->requests_put;
    out.requests_list = figures->requests_list;
    out.requests_delete = figures->requests_delete;
    out.retries = figures->retries;
    out.hedges = figures->hedges;
    out.hedge_bytes = figures->hedge_bytes;
  }
  out.corrupt_found = counters_.corrupt_found;
  out.streams_opened = counters_.streams_opened;
  out.streams_failed = counters_.streams_failed;
  out.chunks_published = counters_.chunks_published;
  out.chunks_already_present = counters_.chunks_already_present;
  out.chunks_dropped = counters_.chunks_dropped;
  for (std::uint8_t code = 1; code <= Counters::kLastErrorCode; ++code) {
    const std::uint64_t count = counters_.errors(ErrorCode{code});
    if (count > 0) out.errors[std::string(error_code_name(ErrorCode{code}))] = count;
  }
  return out;
}

}  // namespace objectcache::cache
