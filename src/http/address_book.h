#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "http/resolver.h"

namespace objectcache::http {

/// Decides which address the next connection goes to: the one with the fewest connections among
/// those that work. One that failed is left out for a while that doubles with every failure in a
/// row; when all are left out, the one whose time ends first. Pure: time is an argument.
///
/// Threads: one.
class AddressBook {
 public:
  struct Options {
    Duration avoid_min = std::chrono::milliseconds(500);
    Duration avoid_max = std::chrono::seconds(30);
  };
  explicit AddressBook(Options options) : options_(options) {}

  /// Takes over what is known of addresses that stay.
  void replace(const std::vector<SocketAddress>& addresses);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool any_good(TimePoint now) const { return avoided(now) < size(); }
  [[nodiscard]] std::size_t avoided(TimePoint now) const;
  /// Requires: size() > 0.
  [[nodiscard]] const SocketAddress& choose(TimePoint now) const;

  /// Of connections. Addresses that are not in the book (any more) are ignored.
  void opening(const SocketAddress& address);
  void closed(const SocketAddress& address);
  void worked(const SocketAddress& address);
  void failed(const SocketAddress& address, TimePoint now);
  /// Has not failed yet, but others shall be tried first.
  void slow(const SocketAddress& address, TimePoint now);

 private:
  struct Entry {
    SocketAddress address = {};
    std::uint32_t connections = 0;
    std::uint32_t failures = 0;  ///< In a row.
    TimePoint avoid_until{};
  };
  [[nodiscard]] Entry* find(const SocketAddress& address);

  Options options_;
  std::vector<Entry> entries_;
};

}  // namespace objectcache::http
