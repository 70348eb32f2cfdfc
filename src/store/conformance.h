#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/object_store.h"
#include "store/testing/loop_driver.h"

namespace objectcache::store {

/// One store for one test: what the suite runs against. A factory makes a new one for each case.
/// Test-only: linked through the room store_conformance.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  [[nodiscard]] virtual ObjectStore& store() = 0;
  [[nodiscard]] virtual LoopDriver& driver() = 0;
  /// Another loop on a thread of its own that uses the same store; null if the store's loops cannot
  /// be several (a virtual clock).
  [[nodiscard]] virtual std::unique_ptr<LoopDriver> another_driver() { return nullptr; }
  /// Another client of the same objects: a second store on the same bucket or directory. Null if
  /// there is none.
  [[nodiscard]] virtual ObjectStore* another_client() { return nullptr; }
  /// What every key of the suite starts with; ends with '/'. Unique for this object, so that a
  /// shared bucket need not be emptied.
  [[nodiscard]] virtual std::string key_prefix() { return "t/"; }
};

/// What a backend does not promise: the cases named here are skipped, and say so. StoreTraits'
/// own declarations (put_if_absent_is_atomic, key_component_bytes_max) are read from the store.
struct ConformanceOptions {
  std::set<std::string> deviations;  ///< Names of cases; an unknown name fails registration.
  std::uint64_t large_object_bytes = std::uint64_t{64} << 20;
  std::uint32_t listing_keys = 1'200;            ///< At least 1,200: more than one full page.
  Duration patience = std::chrono::seconds(60);  ///< How long one call may take.
};

/// Returns the store under test, or null to skip the suite (a server that is not there).
using StoreFactory = std::function<std::unique_ptr<StoreUnderTest>()>;

/// Registers every case as the test `<name>.<case>` (no TEST() of the program may use `name`). Call
/// it while static objects are made:
///
///   const bool registered = register_conformance("MemoryStore", [] { return ...; });
bool register_conformance(std::string name, StoreFactory factory, ConformanceOptions options = {});

/// The names of the cases, for tests of the suite itself.
[[nodiscard]] std::vector<std::string_view> conformance_cases();

}  // namespace objectcache::store
