#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "objectcache/error.h"
#include "objectcache/types.h"

namespace objectcache::store {

/// The full name of an object inside a store, '/'-separated, without a leading '/'.
/// 1 to 900 bytes of [A-Za-z0-9._/-]; no empty, "." or ".." component.
struct ObjectKey {
  std::string text;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};
/// Empty, or says which rule `key` breaks.
[[nodiscard]] std::optional<std::string> object_key_problem(const ObjectKey& key);

/// Identifies the content of one published object: an S3 ETag (quotes included, as answered) or a
/// backend's equivalent. Two different publications under one key have different versions.
struct ObjectVersion {
  std::string text;
  friend bool operator==(const ObjectVersion&, const ObjectVersion&) = default;
};

struct ObjectInfo {
  ObjectKey key;
  std::uint64_t size_bytes = 0;
  ObjectVersion version;
  std::chrono::system_clock::time_point modified{};
};

// ---------------------------------------------------------------- GET

enum class GetOutcome : std::uint8_t {
  kOk,              ///< All `length` bytes are in the destination.
  kMissing,         ///< No such object. A value, not an error.
  kVersionChanged,  ///< The object is there, but not in the version asked for.
  kOutOfRange,      ///< The object is shorter than offset + length. Nothing is delivered.
};

struct GetAnswer {
  GetOutcome outcome = GetOutcome::kOk;
  ObjectVersion version{};         ///< Set for kOk.
  std::uint64_t object_bytes = 0;  ///< Size of the whole object; set for kOk.
};

struct GetRequest {
  ObjectKey key;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  ///< > 0.
  /// Filled in order with the range; sizes add up to `length`, none is empty. The memory belongs
  /// to the operation until its completion has been called.
  std::vector<Segment> destination{};
  /// Only this version will do. The whole read of the operation, retries and hedges included,
  /// comes from one version in any case.
  std::optional<ObjectVersion> version{};
  TimePoint deadline{};
  /// Bytes the operation may read before it needs Operation::grant(). It then holds still, without
  /// an error and without its stall timeout running; the deadline stays in force. Before it holds
  /// still it has reported, with on_bytes, all that it was granted.
  std::uint64_t grant_bytes = UINT64_MAX;
  /// Called on the loop, any number of times before the completion: the first `bytes` of the
  /// destination are final and will not be touched again by this operation. Strictly increasing.
  /// `version` is that of the answer. The last call may be missing: kOk implies `length`.
  std::move_only_function<void(std::uint64_t bytes, const ObjectVersion& version)> on_bytes{};
};
using GetCompletion = std::move_only_function<void(Result<GetAnswer>)>;

// ---------------------------------------------------------------- PUT

enum class PutMode : std::uint8_t {
  kIfAbsent,  ///< Never replaces an existing object, as far as the store can promise it.
  kReplace,   ///< Publishes unconditionally.
};
enum class PutOutcome : std::uint8_t { kCreated, kAlreadyExists };

struct PutAnswer {
  PutOutcome outcome = PutOutcome::kCreated;
  ObjectVersion version{};  ///< Set for kCreated where the store tells it.
};

struct PutRequest {
  ObjectKey key;
  /// Sent in order. The memory must stay unchanged until the completion has been called.
  std::vector<ConstSegment> body{};
  PutMode mode = PutMode::kIfAbsent;
  TimePoint deadline{};
};
using PutCompletion = std::move_only_function<void(Result<PutAnswer>)>;

// ---------------------------------------------------------------- HEAD, LIST, DELETE

/// Empty: no such object.
using HeadCompletion = std::move_only_function<void(Result<std::optional<ObjectInfo>>)>;

struct ListRequest {
  std::string prefix{};       ///< Only keys that start with it. May be empty.
  std::string start_after{};  ///< Only keys greater than it (byte order). May be empty.
  /// '/' rolls keys up to the next '/' behind the prefix into `common_prefixes`; 0: no roll-up.
  char delimiter = 0;
  std::uint32_t entries_max = 1000;  ///< 1 to 1000: entries plus common prefixes of one page.
  TimePoint deadline{};
};
struct ListPage {
  std::vector<ObjectInfo> entries;           ///< Ascending in byte order of the key.
  std::vector<std::string> common_prefixes;  ///< Ascending, each ends with the delimiter.
  /// Empty: the listing is complete. Else pass it as `start_after` for the next page.
  std::string next_start_after;
};
using ListCompletion = std::move_only_function<void(Result<ListPage>)>;

/// Deleting what is not there succeeds.
using RemoveCompletion = std::move_only_function<void(Result<void>)>;

struct RemoveFailure {
  ObjectKey key;
  Error error;
};
/// The keys that could not be deleted; empty: all are gone. An Error: nothing is known.
using RemoveManyCompletion = std::move_only_function<void(Result<std::vector<RemoveFailure>>)>;

// ---------------------------------------------------------------- the port

/// One running call. Owner thread of its loop only. Letting go of the handle does not cancel.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Ends the call early. Its completion still comes, later and exactly once: kCancelled, or the
  /// result if that was already decided. Once it has come, nothing touches the memory of the call.
  /// Harmless when repeated and after the completion.
  virtual void cancel() = 0;
  /// GET only: allows `bytes` more to be read (saturating). Harmless elsewhere.
  virtual void grant(std::uint64_t bytes) { static_cast<void>(bytes); }
};
using OperationHandle = std::shared_ptr<Operation>;

/// What a store is called in messages and what it promises. Deviations from the conformance suite
/// (store/conformance.h) are declared here, by name.
struct StoreTraits {
  std::string url;                      ///< For messages; without secrets.
  bool put_if_absent_is_atomic = true;  ///< False: racing writers may replace each other.
  bool durable_after_put = false;       ///< A finished PUT survives a power failure.
  /// Keys with a longer component (what stands between two '/') are refused: kInvalidArgument.
  std::uint32_t key_component_bytes_max = 900;
};

/// What a store counts by itself since it was opened: requests as they went out, with retries and
/// hedges, where the caller sees operations only.
struct StoreFigures {
  std::uint64_t requests_get = 0;
  std::uint64_t requests_put = 0;
  std::uint64_t requests_head = 0;
  std::uint64_t requests_list = 0;
  std::uint64_t requests_delete = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t retries = 0;
  std::uint64_t hedges = 0;
  std::uint64_t hedge_bytes = 0;
  Duration first_byte{};        ///< The usual one; zero: not measured.
  double bytes_per_second = 0;  ///< The best rate seen; 0: not measured.
};

/// A flat namespace of immutable objects: the one port through which everything reaches storage.
///
/// Every call is asynchronous and belongs to `loop`: call on its owner thread; the completion
/// comes on it exactly once, never from inside the call that started the operation, and not later
/// than shortly after the deadline whatever the store does. A deadline in the past completes with
/// kDeadlineExceeded. Bad arguments (object_key_problem, sizes that do not add up) complete with
/// kInvalidArgument. Errors name action and key.
///
/// Threads: one store may serve several loops at once, each on its own thread. The store must
/// outlive its operations, and `loop` the completions.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  virtual OperationHandle get(EventLoop& loop, GetRequest request, GetCompletion done) = 0;
  virtual OperationHandle put(EventLoop& loop, PutRequest request, PutCompletion done) = 0;
  virtual OperationHandle head(EventLoop& loop, ObjectKey key, TimePoint deadline,
                               HeadCompletion done) = 0;
  virtual OperationHandle list(EventLoop& loop, ListRequest request, ListCompletion done) = 0;
  virtual OperationHandle remove(EventLoop& loop, ObjectKey key, TimePoint deadline,
                                 RemoveCompletion done) = 0;
  /// At most 1,000 keys a call.
  virtual OperationHandle remove_many(EventLoop& loop, std::vector<ObjectKey> keys,
                                      TimePoint deadline, RemoveManyCompletion done) = 0;

  [[nodiscard]] virtual const StoreTraits& traits() const = 0;
  /// Any thread. Empty: this store sends no requests of its own, operations are all there is.
  [[nodiscard]] virtual std::optional<StoreFigures> figures() const { return std::nullopt; }
};

}  // namespace objectcache::store
