// What one decision of the admission costs: a stream reports the end of a read, states its next
// demand, and the next grant is asked for.
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "sched/earliest_due_first.h"

namespace objectcache::sched {
namespace {

void one_decision(benchmark::State& state) {
  const auto streams = static_cast<std::uint32_t>(state.range(0));
  EarliestDueFirst admission({.streams_max = streams, .requests_in_flight_max = 64});
  const TimePoint now{std::chrono::hours(1)};
  std::vector<StreamId> ids;
  std::uint64_t random = 1;
  const auto next_due = [&] {
    random = random * 6364136223846793005U + 1442695040888963407U;
    return now + std::chrono::nanoseconds(random >> 40);
  };
  for (std::uint32_t i = 0; i < streams; ++i) {
    ids.push_back(admission.add({.layer_bytes = {}, .windows = {}}, now).value());
    admission.demand(ids.back(), DemandKind::kStart, {.bytes = 1 << 20, .due = next_due()}, now);
  }
  std::vector<StreamId> running;
  while (auto grant = admission.next(now).grant) running.push_back(grant->stream);
  std::size_t turn = 0;
  for (auto _ : state) {
    StreamId& stream = running[turn];
    admission.account(stream, {.received_bytes = 1 << 20, .requests_ended = 1}, now);
    admission.demand(stream, DemandKind::kStart, {.bytes = 1 << 20, .due = next_due()}, now);
    stream = admission.next(now).grant->stream;
    if (++turn == running.size()) turn = 0;
  }
}
BENCHMARK(one_decision)->Arg(64)->Arg(1'024)->Arg(10'000);

}  // namespace
}  // namespace objectcache::sched
