// Streams on real loops, with other threads that wait, cancel and ask: for the thread sanitizer.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/blocking.h"
#include "base/thread_event_loop.h"
#include "objectcache/layer_stream.h"
#include "store/memory/memory_store.h"
#include "stream/testing/stream_world.h"

namespace objectcache::stream {
namespace {

using std::chrono::seconds;

/// The chunks of a StreamWorld in a MemoryStore, read on two loops of two threads.
struct RealWorld {
  StreamWorld fake{{.chunks = 6, .layers = 5, .units = 2, .unit_tokens = 64}};
  store::MemoryStore store{{.piece_bytes = 1000}};
  MemoryBudget memory{{.capacity_bytes = 64 * 1024}};
  AdmissionPoint point{std::make_unique<sched::EarliestDueFirst>(
      sched::EarliestDueFirst::Options{.requests_in_flight_max = 3})};
  EventLoopThread threads[2];

  RealWorld() {
    const TimePoint deadline = std::chrono::steady_clock::now() + seconds(30);
    EventLoop& loop = threads[0].loop();
    for (const auto& [key, object] : fake.store.objects) {
      const auto put = run_blocking<store::PutAnswer>(loop, deadline, [&](auto done) {
        return store.put(loop,
                         {.key = {key},
                          .body = {ConstSegment(object.bytes)},
                          .mode = store::PutMode::kReplace,
                          .deadline = deadline},
                         std::move(done));
      });
      EXPECT_TRUE(put);
    }
  }

  struct Read {
    std::vector<std::vector<std::byte>> memory;
    std::optional<LayerStream> stream;
  };
  std::unique_ptr<Read> open(int loop, std::uint32_t connections) {
    auto read = std::make_unique<Read>();
    ReadRequest request;
    std::vector<Segment> areas;
    for (std::uint32_t l = 0; l < 5; ++l) {
      read->memory.emplace_back(fake.source->layout.slice_bytes(l) * 6);
      areas.emplace_back(read->memory.back());
    }
    request.chunks = fake.keys;
    request.destination = Destination::contiguous(std::move(areas));
    request.deadline = std::chrono::steady_clock::now() + seconds(30);
    request.connections_max = connections;
    const auto plan = plan::plan_read(read_job(fake.source->layout, request),
                                      {.connections = connections, .bytes_per_s = 1e9})
                          .value();
    read->stream.emplace(
        open_stream(
            {.loop = threads[loop].loop(), .store = store, .admission = point, .memory = memory},
            {}, fake.source, std::move(request), plan)
            .value());
    return read;
  }
  void expect_layer(const Read& read, std::uint32_t layer) {
    const std::uint64_t bytes = fake.source->layout.slice_bytes(layer);
    for (std::uint32_t c = 0; c < 6; ++c) {
      const auto part = ConstSegment(read.memory[layer]).subspan(c * bytes, bytes);
      EXPECT_TRUE(std::ranges::equal(part, fake.slice(layer, c))) << layer << ' ' << c;
    }
  }
};

TEST(Threads, LayersAreVisibleToWhoeverWaitsForThem) {
  RealWorld world;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<RealWorld::Read>> reads;
    for (int i = 0; i < 6; ++i) reads.push_back(world.open(i % 2, 1 + static_cast<unsigned>(i)));
    std::vector<std::thread> waiters;
    for (auto& read : reads) {
      for (int w = 0; w < 2; ++w) {
        waiters.emplace_back([&world, &read] {
          for (std::uint32_t l = 0; l < 5; ++l) {
            const auto waited =
                read->stream->wait(l, std::chrono::steady_clock::now() + seconds(30));
            ASSERT_TRUE(waited) << waited.error().to_string();
            world.expect_layer(*read, l);
            static_cast<void>(read->stream->stats());
          }
        });
      }
    }
    for (auto& waiter : waiters) waiter.join();
  }
}

TEST(Threads, AnEventFdWakesAPoller) {
  RealWorld world;
  auto read = world.open(0, 2);
  pollfd poller{.fd = read->stream->event_fd(), .events = POLLIN, .revents = 0};
  while (!read->stream->ended()) {
    ASSERT_EQ(::poll(&poller, 1, 30'000), 1);
    std::uint64_t count = 0;
    ASSERT_EQ(::read(poller.fd, &count, sizeof count), 8);
  }
  EXPECT_EQ(read->stream->ready_layers(), 5u);
}

TEST(Threads, CancelFromAnywhereLeavesTheMemoryAlone) {
  RealWorld world;
  for (int round = 0; round < 200; ++round) {
    auto a = world.open(0, 4);
    auto b = world.open(1, 4);
    std::thread other([&] { a->stream->cancel(); });
    if (round % 3 == 0) {
      static_cast<void>(a->stream->wait(0, std::chrono::steady_clock::now() + seconds(30)));
    }
    ASSERT_TRUE(a->stream->cancel_and_wait(std::chrono::steady_clock::now() + seconds(30)));
    EXPECT_TRUE(a->stream->ended());
    // A race with the stream would show here, and to the sanitizers.
    for (auto& area : a->memory) std::ranges::fill(area, std::byte{1});
    for (std::uint32_t l = 0; l < b->stream->ready_layers(); ++l) world.expect_layer(*b, l);
    other.join();
    b.reset();  // Cancels and waits.
    for (const auto& area : a->memory) {
      ASSERT_TRUE(std::ranges::all_of(area, [](std::byte v) { return v == std::byte{1}; }));
    }
  }
}

}  // namespace
}  // namespace objectcache::stream
