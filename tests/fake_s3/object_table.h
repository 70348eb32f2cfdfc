#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "s3/xml.h"

namespace objectcache::fake_s3 {

/// One publication of an object. Never changes, so that it is sent without a lock.
struct Object {
  std::vector<std::byte> bytes;
  std::string etag;  ///< With quotes.
  std::chrono::system_clock::time_point modified;
};
using ObjectPtr = std::shared_ptr<const Object>;

enum class EtagMode : std::uint8_t {
  kUnique,  ///< Another one for each publication, even of equal bytes: what S3 does not promise to
            ///< spare a client.
  kMd5,     ///< Of the bytes: what most servers do.
};

/// Buckets and objects in memory. Threads: any; locks are held for look-ups only.
class ObjectTable {
 public:
  explicit ObjectTable(EtagMode etags) : etags_(etags) {}

  void create_bucket(std::string_view bucket);
  [[nodiscard]] bool has_bucket(std::string_view bucket) const;

  /// Null: no such object (or bucket).
  [[nodiscard]] ObjectPtr find(std::string_view bucket, std::string_view key) const;
  /// The next key after `key`, round to the first; null: there is no other.
  [[nodiscard]] ObjectPtr find_other(std::string_view bucket, std::string_view key) const;

  enum class Condition : std::uint8_t { kNone, kAbsent, kMatches };
  struct PutResult {
    ObjectPtr object;      ///< What was stored; null: the condition did not hold.
    bool existed = false;  ///< An object was there before.
  };
  /// `etag` counts for kMatches; "*" matches any existing object. Empty: no such bucket.
  [[nodiscard]] std::optional<PutResult> put(std::string_view bucket, std::string_view key,
                                             std::vector<std::byte> bytes, Condition condition,
                                             std::string_view etag);
  void erase(std::string_view bucket, std::string_view key);
  [[nodiscard]] std::size_t count(std::string_view bucket) const;

  struct ListQuery {
    std::string_view prefix;
    std::string_view delimiter;
    std::string_view after;  ///< Keys, and rolled-up prefixes, greater than it.
    std::size_t entries_max = 1000;
  };
  struct ListPage {
    std::vector<s3::ListedObject> objects;
    std::vector<std::string> common_prefixes;
    bool truncated = false;
    std::string last;  ///< Pass as `after` for the next page.
  };
  [[nodiscard]] ListPage list(std::string_view bucket, const ListQuery& query) const;

 private:
  using Bucket = std::map<std::string, ObjectPtr, std::less<>>;

  const EtagMode etags_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, Bucket, std::less<>> buckets_;
  std::uint64_t publications_ = 0;
};

}  // namespace objectcache::fake_s3
