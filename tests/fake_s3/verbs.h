#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fake_s3/fault_plan.h"
#include "fake_s3/object_table.h"
#include "fake_s3/wire.h"

namespace objectcache::fake_s3 {

/// What is sent back, before delivery faults. Content-Length is not among the headers.
struct Answer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string text;                 ///< The body, unless `object` is set.
  ObjectPtr object;                 ///< Keeps `body` alive.
  std::span<const std::byte> body;  ///< A part of `object`.
  bool head_only = false;           ///< HEAD: the length is told, the body is not sent.

  [[nodiscard]] std::span<const std::byte> bytes() const {
    return object ? body : std::as_bytes(std::span(text.data(), text.size()));
  }
  void set_header(std::string_view name, std::string value);
  void remove_header(std::string_view name);
};

[[nodiscard]] Answer error_answer(int status, std::string_view s3_code, std::string_view message);

/// Where a request goes, decoded.
struct Route {
  std::string bucket;  ///< Empty: the service itself.
  std::string key;     ///< Empty: the bucket itself.
};

struct VerbRules {
  std::string region;
  std::string base_path;            ///< Encoded prefix of every path; empty: none.
  std::string virtual_host_suffix;  ///< "store.local": bucket.store.local is a bucket's host.
  bool refuse_unknown_headers = true;
  std::size_t object_bytes_max = std::size_t{256} << 20;
};

/// Finds out bucket and key. Empty: outside the base path, or malformed.
[[nodiscard]] std::optional<Route> route_of(const WireRequest& request, const VerbRules& rules);

/// Carries out a request whose signature has been checked. `faults` counts for kOtherObject and
/// kIgnoreRange only. Takes the request's body.
[[nodiscard]] Answer carry_out(WireRequest& request, const Route& route, const VerbRules& rules,
                               ObjectTable& table, std::span<const Fault> faults);

}  // namespace objectcache::fake_s3
