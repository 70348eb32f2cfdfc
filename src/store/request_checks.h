#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/object_store.h"

namespace objectcache::store {

// What every backend checks before it starts a call, and the errors that all give alike. Each
// *_problem() is empty, or says which rule of object_store.h the request breaks.

[[nodiscard]] std::optional<std::string> get_problem(const GetRequest& request);
[[nodiscard]] std::optional<std::string> put_problem(const PutRequest& request);
[[nodiscard]] std::optional<std::string> list_problem(const ListRequest& request);
[[nodiscard]] std::optional<std::string> remove_many_problem(const std::vector<ObjectKey>& keys);

/// The sum of the sizes of a request's body.
[[nodiscard]] std::uint64_t body_bytes(const std::vector<ConstSegment>& body);

/// What a call is called in its errors: "GET" of "<url>/<key>".
struct CallName {
  std::string_view action;  ///< A literal.
  std::string subject;

  [[nodiscard]] Error error(ErrorCode code, std::string message) const;
  [[nodiscard]] Error cancelled() const { return error(ErrorCode::kCancelled, "cancelled"); }
  [[nodiscard]] Error deadline_exceeded() const {
    return error(ErrorCode::kDeadlineExceeded, "the deadline passed first");
  }
};
/// `url` is StoreTraits::url; its trailing '/' is not doubled.
[[nodiscard]] CallName name_call(std::string_view action, std::string_view url,
                                 std::string_view key);

/// Where a page that ends in this common prefix goes on: '~' is greater than every byte of a key,
/// so nothing below the prefix follows, and whatever sorts behind it does.
[[nodiscard]] std::string start_after_common_prefix(std::string_view common_prefix);

}  // namespace objectcache::store
