#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/object_store.h"

namespace objectcache::store {

/// The table behind a MemoryStore: keys in byte order, each with an immutable body.
///
/// Threads: any; one mutex, held only for look-ups, never for copies of bodies.
class MemoryObjects {
 public:
  struct Body {
    std::unique_ptr<std::byte[]> bytes;
    std::uint64_t size_bytes = 0;
  };
  struct Object {
    std::shared_ptr<const Body> body;
    ObjectVersion version;
    std::chrono::system_clock::time_point modified;
  };

  MemoryObjects(std::uint64_t capacity_bytes, std::size_t objects_max)
      : capacity_bytes_(capacity_bytes), objects_max_(objects_max) {}

  [[nodiscard]] std::optional<Object> find(const std::string& key) const;
  /// Sets `bytes` of the capacity aside for a body. False: there is no room.
  [[nodiscard]] bool reserve(std::uint64_t bytes);
  void unreserve(std::uint64_t bytes);
  /// Publishes a body whose bytes are reserved, and takes the reservation over where it creates;
  /// kAlreadyExists leaves it with the caller. Empty: objects_max is reached.
  [[nodiscard]] std::optional<PutAnswer> publish(const std::string& key,
                                                 std::shared_ptr<const Body> body, PutMode mode);
  void erase(const std::string& key);
  [[nodiscard]] ListPage list(const ListRequest& request) const;
  [[nodiscard]] std::uint64_t used_bytes() const;
  [[nodiscard]] std::size_t size() const;

 private:
  const std::uint64_t capacity_bytes_;
  const std::size_t objects_max_;
  mutable std::mutex mutex_;
  std::map<std::string, Object, std::less<>> objects_;
  std::uint64_t used_bytes_ = 0;  // Reservations included.
  std::uint64_t last_version_ = 0;
};

}  // namespace objectcache::store
