// Ours in the store-read bench: the S3 backend behind the ObjectStore port, into buffers of the
// caller, each range checked by CRC-32C as its bytes arrive.
#include <fmt/format.h>

#include <cstdio>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/bench/benches.h"
#include "cli/bench/read_workload.h"
#include "digest/crc32c.h"
#include "http/reactor.h"
#include "store/open_store.h"

namespace objectcache::cli {
namespace {

/// As many reads at once as connections, each with a buffer of its own. Everything but read() is
/// on the reactor's thread.
class RangeReader {
 public:
  RangeReader(http::Reactor& loop, store::ObjectStore& store, const ReadWorkload& work, bool check)
      : loop_(loop), store_(store), work_(work), check_(check), slots_(work.connections) {
    for (Slot& slot : slots_) slot.buffer = std::make_unique<std::byte[]>(work.length);
  }

  /// Ranges [first, last).
  [[nodiscard]] Result<void> read(std::size_t first, std::size_t last) {
    std::promise<void> done;
    loop_.post([&, first, last] {
      next_ = first;
      last_ = last;
      running_ = 0;
      done_ = &done;
      for (Slot& slot : slots_) begin(slot);
      if (running_ == 0) done.set_value();
    });
    done.get_future().wait();
    if (error_) return std::unexpected(*error_);
    return {};
  }

 private:
  struct Slot {
    std::unique_ptr<std::byte[]> buffer;
    std::uint64_t checked = 0;
    std::uint32_t crc = 0;
  };

  void begin(Slot& slot) {
    if (next_ == last_ || error_) return;
    const ReadWorkload::Range& range = work_.ranges[next_++];
    ++running_;
    slot.checked = 0;
    slot.crc = 0;
    store::GetRequest request{.key = {work_.objects[range.object].key},
                              .offset = range.offset,
                              .length = work_.length,
                              .destination = {Segment(slot.buffer.get(), work_.length)},
                              .deadline = loop_.now() + std::chrono::seconds(60)};
    if (check_) {
      request.on_bytes = [this, &slot](std::uint64_t bytes, const store::ObjectVersion&) {
        check_to(slot, bytes);
      };
    }
    store_.get(loop_, std::move(request), [this, &slot, &range](Result<store::GetAnswer> answer) {
      finish(slot, range, std::move(answer));
    });
  }

  void check_to(Slot& slot, std::uint64_t bytes) {
    slot.crc = digest::crc32c_extend(
        slot.crc, ConstSegment(slot.buffer.get() + slot.checked, bytes - slot.checked));
    slot.checked = bytes;
  }

  void finish(Slot& slot, const ReadWorkload::Range& range, Result<store::GetAnswer> answer) {
    --running_;
    if (!answer) {
      error_ = std::move(answer.error());
    } else if (answer->outcome != store::GetOutcome::kOk) {
      error_ = fail(ErrorCode::kNotFound, "the range is not there", "GET").error();
    } else if (check_) {
      check_to(slot, work_.length);
      if (slot.crc != range.crc32c) {
        error_ = fail(ErrorCode::kCorrupt, "the bytes are not those that were put", "GET").error();
      }
    }
    begin(slot);
    if (running_ == 0) done_->set_value();
  }

  http::Reactor& loop_;
  store::ObjectStore& store_;
  const ReadWorkload& work_;
  const bool check_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  std::size_t last_ = 0;
  std::size_t running_ = 0;
  std::promise<void>* done_ = nullptr;
  std::optional<Error> error_;
};

Result<ClientResult> read_all(const ReadWorkload& work, const StoreReadClientOptions& options) {
  auto loop = http::Reactor::start();
  if (!loop) return std::unexpected(std::move(loop.error()));
  const std::string url =
      fmt::format("{}&connections={}{}", work.url, work.connections, options.parameters);
  auto store = store::open_store(url, options.common.environment);
  if (!store) return std::unexpected(std::move(store.error()));
  RangeReader reader(**loop, **store, work, options.check);
  if (auto ok = reader.read(0, work.warm_up); !ok) return std::unexpected(std::move(ok.error()));
  const ClientMeter meter;
  if (auto ok = reader.read(work.warm_up, work.ranges.size()); !ok) {
    return std::unexpected(std::move(ok.error()));
  }
  const ClientResult result = meter.read(work.measured_bytes());
  store->reset();
  return result;
}

}  // namespace

ExitCode run_store_read_client(const StoreReadClientOptions& options, Console& console) {
  auto work = read_workload_file(options.workload);
  if (!work) return console.error(work.error());
  auto result = read_all(*work, options);
  if (!result) return console.error(result.error());
  std::fputs(format_client_result(*result).c_str(), stdout);
  return ExitCode::kOk;
}

}  // namespace objectcache::cli
