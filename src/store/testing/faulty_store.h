#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "store/object_store.h"

namespace objectcache::store {

/// Which faults a FaultyStore injects, each with its probability per call.
struct FaultRates {
  // Any call.
  double unavailable = 0;  ///< kUnavailable; nothing happens in the wrapped store.
  double throttled = 0;    ///< kThrottled, likewise.
  double delayed = 0;      ///< Starts up to `delay_max` later.
  double hanging = 0;      ///< No answer until the deadline or a cancel.
  // GET.
  double flipped = 0;          ///< One bit of what is delivered is wrong; the answer says kOk.
  double cut = 0;              ///< kUnavailable after a part of the bytes.
  double missing = 0;          ///< kMissing although it may be there.
  double version_changed = 0;  ///< kVersionChanged although it may not have.
  double swapped = 0;          ///< Bytes of another object, under this one's version.
  // PUT, DELETE.
  double lost_answer = 0;  ///< Done, but the caller hears kUnavailable.
  Duration delay_max = std::chrono::milliseconds(50);
};

/// A fake for tests: any store with faults, drawn from a seed, so that one thread's run repeats
/// exactly. It breaks what real stores break, and keeps the port's promises even so: one
/// completion, no byte touched after it, announced bytes final.
///
/// Threads: any number of loops, see ObjectStore. Lifetimes: the wrapped store must outlive it.
class FaultyStore final : public ObjectStore {
 public:
  enum class Fault : std::uint8_t {
    kNone,
    kUnavailable,
    kThrottled,
    kDelayed,
    kHanging,
    kFlipped,
    kCut,
    kMissing,
    kVersionChanged,
    kSwapped,
    kLostAnswer,
  };

  FaultyStore(ObjectStore& wrapped, std::uint64_t seed, FaultRates rates);
  ~FaultyStore() override;

  OperationHandle get(EventLoop& loop, GetRequest request, GetCompletion done) override;
  OperationHandle put(EventLoop& loop, PutRequest request, PutCompletion done) override;
  OperationHandle head(EventLoop& loop, ObjectKey key, TimePoint deadline,
                       HeadCompletion done) override;
  OperationHandle list(EventLoop& loop, ListRequest request, ListCompletion done) override;
  OperationHandle remove(EventLoop& loop, ObjectKey key, TimePoint deadline,
                         RemoveCompletion done) override;
  OperationHandle remove_many(EventLoop& loop, std::vector<ObjectKey> keys, TimePoint deadline,
                              RemoveManyCompletion done) override;
  [[nodiscard]] const StoreTraits& traits() const override { return wrapped_.traits(); }

  /// From now on. Any thread.
  void set_rates(FaultRates rates);
  /// How often a fault was injected. Any thread.
  [[nodiscard]] std::uint64_t injected(Fault fault) const;
  [[nodiscard]] std::uint64_t injected_total() const;

 private:
  class FaultyGet;
  /// What befalls one call.
  struct Draw {
    Fault fault = Fault::kNone;
    Duration delay{};
    std::uint64_t random = 0;
    std::optional<ObjectKey> other_key{};  ///< Of kSwapped.
  };
  enum class Kind : std::uint8_t { kGet, kChange, kLook };
  [[nodiscard]] Draw draw(Kind kind, const ObjectKey* key);
  template <class T, class Start>
  OperationHandle run(EventLoop& loop, std::string_view action, std::string_view key,
                      TimePoint deadline, Kind kind, Start start,
                      std::move_only_function<void(Result<T>)> done);

  ObjectStore& wrapped_;
  mutable std::mutex mutex_;
  Random random_;  // Guarded by mutex_, like all that follows.
  FaultRates rates_;
  std::map<Fault, std::uint64_t> injected_;
  std::vector<ObjectKey> recent_keys_;  // Candidates for kSwapped.
};

}  // namespace objectcache::store
