#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
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

/// How far a request has been sent. Pure.
///
/// Threads: one.   Lifetimes: refers to the body's memory until forget().
class RequestProgress {
 public:
  void start(std::string head, std::span<const ConstSegment> body);
  /// What is to be sent next; the number of `out` that are set.
  [[nodiscard]] std::size_t next(std::span<iovec> out) const;
  void advance(std::size_t bytes);
  [[nodiscard]] bool done() const { return head_sent_ == head_.size() && segment_ == body_.size(); }
  void forget();

 private:
  std::string head_;
  std::size_t head_sent_ = 0;
  std::span<const ConstSegment> body_;
  std::size_t segment_ = 0;  ///< The next byte of the body is body_[segment_][offset_].
  std::size_t offset_ = 0;
};

}  // namespace objectcache::http
