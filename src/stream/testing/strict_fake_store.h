#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/object_store.h"

namespace objectcache::stream {

/// A store for tests that follows a script and uses every freedom that the port leaves to a store:
/// it scribbles over parts of the destination that it has not reported yet, goes on doing so after
/// a cancel until the completion, completes late, and holds still where nothing is granted.
///
/// Threads: one loop.
class StrictFakeStore final : public store::ObjectStore {
 public:
  struct Object {
    std::vector<std::byte> bytes;
    std::string version;
  };
  enum class Fault : std::uint8_t {
    kNone,
    kFlippedBit,  ///< One bit of what is delivered is wrong.
    kOtherBody,   ///< The same range of another object (`other`).
    kGarbage,     ///< All bytes wrong.
    kMissing,
    kVersionChanged,  ///< Says so.
    kOtherVersion,    ///< Right bytes under another version's name; what a pin refuses.
    kOutOfRange,
    kError,         ///< kUnavailable, perhaps after part of the bytes.
    kCorruptError,  ///< kCorrupt as an error of the store.
    kStall,         ///< Nothing more after part of the bytes, until cancel or deadline.
  };
  struct Script {
    Duration first_byte = std::chrono::milliseconds(1);
    Duration piece_time = std::chrono::microseconds(100);  ///< Between pieces.
    std::uint64_t piece_bytes = 1 << 20;
    Duration completion = std::chrono::microseconds(10);  ///< After the last piece.
    Duration cancel_time = std::chrono::microseconds(200);
    bool report_progress = true;  ///< False: on_bytes only where the port demands it.
    Fault fault = Fault::kNone;
    std::uint64_t fault_at = 0;  ///< Byte of the range.
    std::string other = {};      ///< For kOtherBody.
  };
  struct Get {
    std::uint64_t number = 0;  ///< From 0.
    std::string key;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t granted = 0;
    std::string version = {};  ///< Asked for; empty: any.
  };
  using Director = std::function<Script(const Get&)>;

  explicit StrictFakeStore(std::uint64_t seed = 1) : random_(seed) {}
  ~StrictFakeStore() override;

  std::map<std::string, Object> objects;
  Director director = [](const Get&) { return Script{}; };
  std::vector<Get> gets;  ///< All that were started.

  [[nodiscard]] std::uint32_t running() const { return running_; }
  [[nodiscard]] std::uint32_t running_max() const { return running_max_; }
  /// Bytes that may be delivered without a further grant, of all running reads.
  [[nodiscard]] std::uint64_t granted_open() const { return granted_open_; }
  [[nodiscard]] std::uint64_t granted_open_max() const { return granted_open_max_; }
  [[nodiscard]] std::uint64_t faults() const { return faults_; }

  store::OperationHandle get(EventLoop& loop, store::GetRequest request,
                             store::GetCompletion done) override;
  store::OperationHandle put(EventLoop&, store::PutRequest, store::PutCompletion) override;
  store::OperationHandle head(EventLoop&, store::ObjectKey, TimePoint,
                              store::HeadCompletion) override;
  store::OperationHandle list(EventLoop&, store::ListRequest, store::ListCompletion) override;
  store::OperationHandle remove(EventLoop&, store::ObjectKey, TimePoint,
                                store::RemoveCompletion) override;
  store::OperationHandle remove_many(EventLoop&, std::vector<store::ObjectKey>, TimePoint,
                                     store::RemoveManyCompletion) override;
  [[nodiscard]] const store::StoreTraits& traits() const override { return traits_; }

 private:
  class Read;

  Random random_;
  store::StoreTraits traits_{.url = "fake:"};
  std::uint32_t running_ = 0;
  std::uint32_t running_max_ = 0;
  std::uint64_t granted_open_ = 0;
  std::uint64_t granted_open_max_ = 0;
  std::uint64_t faults_ = 0;
};

}  // namespace objectcache::stream
