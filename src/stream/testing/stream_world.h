#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fake_event_loop.h"
#include "base/memory_budget.h"
#include "format/chunk_layout.h"
#include "plan/read_planner.h"
#include "sched/earliest_due_first.h"
#include "stream/admission_point.h"
#include "stream/open_stream.h"
#include "stream/testing/strict_fake_store.h"

namespace objectcache::stream {

/// What a test's chunks look like.
struct WorldOptions {
  std::uint64_t seed = 1;
  std::uint32_t chunks = 4;
  std::uint32_t layers = 3;
  std::uint32_t units = 2;
  std::uint32_t unit_tokens = 4;
  std::vector<std::uint64_t> bytes_per_token = {24};  ///< One, or one a layer.
  ObjectLayout layout = ObjectLayout::kChunk;
  std::uint64_t memory_bytes = 1 << 20;
  sched::EarliestDueFirst::Options admission = {};
  StreamOptions stream = {};
};

/// The memory that one read fills: odd pieces of one arena, with canaries between them.
class TestDestination {
 public:
  enum class Kind { kContiguous, kScattered };

  TestDestination(const format::ChunkLayout& layout, std::uint32_t chunks,
                  std::uint32_t last_tokens, Kind kind, Random& random);

  [[nodiscard]] Destination get() const;
  /// Empty, or what is wrong with the slice or with any canary.
  [[nodiscard]] std::string problem(std::uint32_t layer, std::uint32_t chunk,
                                    const std::vector<std::byte>& expected) const;
  [[nodiscard]] std::string canary_problem() const;
  [[nodiscard]] const std::vector<std::byte>& arena() const { return arena_; }
  [[nodiscard]] std::vector<std::byte>& arena() { return arena_; }

 private:
  [[nodiscard]] Segment segment(std::size_t index) const;

  Kind kind_;
  std::uint32_t chunks_;
  mutable std::vector<std::byte> arena_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // Offset and size of each segment.
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint64_t> slice_bytes_;   // By layer, full chunk.
  std::vector<std::uint64_t> wanted_bytes_;  // By layer, last chunk.
};

struct ReadOptions {
  std::uint32_t chunks = 0;  ///< 0: all.
  std::uint32_t last_tokens = 0;
  std::uint32_t connections = 2;
  ReadMode mode = ReadMode::kPlanned;
  TestDestination::Kind destination = TestDestination::Kind::kContiguous;
  std::vector<Duration> windows = {};
  Duration deadline = std::chrono::seconds(10);
  std::uint64_t lookahead_bytes = 0;
  Priority priority = Priority::kNormal;
  double store_bytes_per_s = 1e9;  ///< What the planner believes.
  Duration store_first_byte = std::chrono::milliseconds(1);
};

/// A stream with its destination and what was heard of it.
struct TestRead {
  std::unique_ptr<TestDestination> destination;
  std::optional<LayerStream> stream;
  std::optional<Error> open_error;
  std::vector<std::pair<std::uint32_t, ErrorCode>> bad_objects;
  std::uint32_t ended_calls = 0;
  std::uint32_t chunks = 0;
  std::uint32_t last_tokens = 0;
};

/// Everything that a stream needs, on a virtual clock, with chunks of known content in the store.
class StreamWorld {
 public:
  explicit StreamWorld(const WorldOptions& options = {});
  ~StreamWorld();

  [[nodiscard]] std::unique_ptr<TestRead> open(const ReadOptions& options = {});
  /// Empty, or what is wrong: ready layers that are not, chunk by chunk, all of one version that
  /// the chunk ever had; or a broken canary.
  [[nodiscard]] std::string problem(const TestRead& read) const;
  /// Runs until the stream has ended. False: it never does.
  bool run_to_end(TestRead& read);

  [[nodiscard]] std::string key(std::uint32_t chunk, std::uint32_t layer = 0) const;
  [[nodiscard]] const std::vector<std::byte>& slice(std::uint32_t layer,
                                                    std::uint32_t chunk) const {
    return slices_[layer * options_.chunks + chunk];
  }
  /// Replaces the chunk by other bytes under another version; valid or not.
  void republish(std::uint32_t chunk, std::string version, std::uint64_t content_seed);

  FakeEventLoop loop;
  Random random;
  StrictFakeStore store;
  MemoryBudget memory;
  sched::EarliestDueFirst* admission = nullptr;  // Owned by `point`.
  std::unique_ptr<AdmissionPoint> point;
  std::shared_ptr<const ChunkSource> source;
  std::vector<ChunkKey> keys;

 private:
  void publish(std::uint32_t chunk, const std::string& version);
  [[nodiscard]] std::string chunk_problem(const TestRead& read, std::uint32_t chunk) const;

  const WorldOptions options_;
  std::vector<std::vector<std::byte>> slices_;  // By layer * chunks + chunk.
  /// By chunk: the slices of its earlier versions, by layer.
  std::vector<std::vector<std::vector<std::vector<std::byte>>>> history_;
};

}  // namespace objectcache::stream
