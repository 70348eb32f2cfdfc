#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/client.h"

namespace objectcache::http {

/// The request line and the headers as they go over the wire, up to the empty line. Adds Host and
/// Content-Length where `request` does not bring them. kInvalidArgument: something in it would
/// break out of its place (control characters, a space in the target, an empty method), or its
/// Content-Length is not its body's. Pure.
[[nodiscard]] Result<std::string> write_request_head(const Request& request, std::string_view host);

[[nodiscard]] std::uint64_t body_bytes(const Request& request);

}  // namespace objectcache::http
