#include "http/address_book.h"

#include <algorithm>
#include <utility>

namespace objectcache::http {

AddressBook::Entry* AddressBook::find(const SocketAddress& address) {
  const auto it =
      std::ranges::find_if(entries_, [&](const Entry& e) { return e.address.same_as(address); });
  return it == entries_.end() ? nullptr : &*it;
}

void AddressBook::replace(const std::vector<SocketAddress>& addresses) {
  std::vector<Entry> next;
  for (const SocketAddress& address : addresses) {
    const Entry* const known = find(address);
    next.push_back(known != nullptr ? *known : Entry{.address = address});
  }
  entries_ = std::move(next);
}

std::size_t AddressBook::avoided(TimePoint now) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [&](const Entry& e) { return e.avoid_until > now; }));
}

const SocketAddress& AddressBook::choose(TimePoint now) const {
  const auto better = [now](const Entry& a, const Entry& b) {
    const bool avoid_a = a.avoid_until > now;
    const bool avoid_b = b.avoid_until > now;
    if (avoid_a != avoid_b) return avoid_b;
    if (avoid_a && a.avoid_until != b.avoid_until) return a.avoid_until < b.avoid_until;
    return a.connections < b.connections;
  };
  return std::ranges::min_element(entries_, better)->address;
}

void AddressBook::opening(const SocketAddress& address) {
  if (Entry* const entry = find(address)) ++entry->connections;
}

void AddressBook::closed(const SocketAddress& address) {
  Entry* const entry = find(address);
  // The address may have left the book and come back while the connection lived.
  if (entry != nullptr && entry->connections > 0) --entry->connections;
}

void AddressBook::worked(const SocketAddress& address) {
  if (Entry* const entry = find(address)) {
    entry->failures = 0;
    entry->avoid_until = {};
  }
}

void AddressBook::failed(const SocketAddress& address, TimePoint now) {
  Entry* const entry = find(address);
  if (entry == nullptr) return;
  // Many connections that fail together are one failure.
  if (entry->failures > 0 && entry->avoid_until > now) return;
  const std::uint32_t doublings = std::min(entry->failures, 16U);
  ++entry->failures;
  entry->avoid_until =
      now + std::min(options_.avoid_min * (std::int64_t{1} << doublings), options_.avoid_max);
}

void AddressBook::slow(const SocketAddress& address, TimePoint now) {
  if (entries_.size() < 2) return;  // There are no others.
  if (Entry* const entry = find(address)) {
    entry->avoid_until = std::max(entry->avoid_until, now + options_.avoid_min);
  }
}

}  // namespace objectcache::http
