#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/event_loop.h"
#include "base/memory_budget.h"
#include "format/chunk_layout.h"
#include "format/names.h"
#include "objectcache/layer_stream.h"
#include "objectcache/shard.h"
#include "plan/read_planner.h"
#include "store/object_store.h"
#include "stream/admission_point.h"

namespace objectcache::stream {

/// What a stream runs on. All must outlive it.
struct StreamPorts {
  EventLoop& loop;  ///< All that the stream does happens on its thread.
  store::ObjectStore& store;
  AdmissionPoint& admission;
  MemoryBudget& memory;  ///< For headers and surplus.
};

struct StreamOptions {
  std::uint32_t connections_default = 16;  ///< K where the request does not say.
  std::uint32_t connections_max = 256;     ///< What a request may say at most.
  /// How far apart layers are due where the request has no windows: the smaller, the more such
  /// streams are served one after the other instead of side by side.
  Duration unknown_window = std::chrono::milliseconds(1);
  /// After a chunk was found missing: how long to wait for the first answers of chunks before it,
  /// so that the failure names the first missing one.
  Duration settle = std::chrono::milliseconds(10);
  /// A read of the last chunk that is wanted in part is cut into narrower ones beyond this surplus.
  std::uint64_t surplus_bytes_max = 1 << 20;
  /// Unit slices of a read: chunks x layers x units. Each takes 5 bytes of tables.
  std::uint64_t slices_max = 1 << 24;
};

/// Where the chunks of one namespace and shard are. Immutable; shared by its streams.
struct ChunkSource {
  format::ChunkLayout layout;
  format::ObjectNames names;
  NamespaceDigest name;
  Shard shard;
};

/// What the planner must know of a read (plan::plan_read).
[[nodiscard]] plan::ReadJob read_job(const format::ChunkLayout& layout, const ReadRequest& request);
[[nodiscard]] plan::PlanMode plan_mode(ReadMode mode);

/// Told on the loop. Any may be empty. Must not destroy the stream.
struct StreamEvents {
  /// An object of this chunk failed its check twice (kCorrupt), or is not what its name says
  /// (kIncompatible). The stream fails right after.
  std::move_only_function<void(std::uint32_t chunk, const Error& error)> on_bad_object;
  /// The stream fails, or was cancelled: comes before anyone can see it, so that whoever sees it
  /// finds what was remembered of the store already corrected.
  std::move_only_function<void(const StreamFailure&)> on_failure;
  /// The stream has ended: the last call.
  std::move_only_function<void(const StreamStats&, const std::optional<StreamFailure>&)> on_ended;
};

/// Starts to read `request` as `plan` says; every (chunk, layer) must be in it exactly once.
/// Returns at once. kInvalidArgument: arguments that do not fit together. kLimitExceeded: too many
/// streams, or too large a read. Any thread.
[[nodiscard]] Result<LayerStream> open_stream(const StreamPorts& ports,
                                              const StreamOptions& options,
                                              std::shared_ptr<const ChunkSource> source,
                                              ReadRequest request, const plan::ReadPlan& plan,
                                              StreamEvents events = {});

}  // namespace objectcache::stream
