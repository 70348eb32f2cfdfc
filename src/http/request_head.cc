#include "http/request_head.h"

#include <fmt/format.h>

#include <algorithm>

namespace objectcache::http {

namespace {

bool is_token(std::string_view text) {
  constexpr std::string_view kOther = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOther.find(c) != std::string_view::npos;
  });
}

bool is_target(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c != 0x7f; });
}

bool is_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
  });
}

std::unexpected<Error> bad(std::string what) {
  return fail(ErrorCode::kInvalidArgument, std::move(what), "write request");
}

}  // namespace

std::uint64_t body_bytes(const Request& request) {
  std::uint64_t sum = 0;
  for (const ConstSegment& segment : request.body) sum += segment.size();
  return sum;
}

Result<std::string> write_request_head(const Request& request, std::string_view host) {
  if (!is_token(request.method)) return bad("the method is not a token");
  if (!is_target(request.target)) return bad("the target is empty or not encoded");
  const std::string length = fmt::format("{}", body_bytes(request));

  std::string out;
  out.reserve(512);
  out.append(request.method).append(" ").append(request.target).append(" HTTP/1.1\r\n");
  if (!find_header(request.headers, "Host")) {
    if (!is_value(host)) return bad("the host's name holds control characters");
    out.append("Host: ").append(host).append("\r\n");
  }
  for (const Header& header : request.headers) {
    if (!is_token(header.name) || !is_value(header.value)) {
      return bad(fmt::format("header '{}' holds characters that it must not", header.name));
    }
    out.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  const auto given = find_header(request.headers, "Content-Length");
  if (given && *given != length) return bad("Content-Length is not the size of the body");
  if (find_header(request.headers, "Transfer-Encoding")) {
    return bad("Transfer-Encoding cannot be chosen");
  }
  if (!given && (length != "0" || request.method == "PUT" || request.method == "POST")) {
    out.append("Content-Length: ").append(length).append("\r\n");
  }
  out.append("\r\n");
  return out;
}

// ---------------------------------------------------------------- progress

void RequestProgress::start(std::string head, std::span<const ConstSegment> body) {
  head_ = std::move(head);
  body_ = body;
  head_sent_ = segment_ = offset_ = 0;
}

std::size_t RequestProgress::next(std::span<iovec> out) const {
  std::size_t count = 0;
  // sendmsg() only reads, whatever the type of iovec says.
  if (head_sent_ < head_.size()) {
    out[count++] = {const_cast<char*>(head_.data()) + head_sent_, head_.size() - head_sent_};
  }
  std::size_t offset = offset_;
  for (std::size_t i = segment_; i < body_.size() && count < out.size(); ++i) {
    const ConstSegment part = body_[i].subspan(offset);
    offset = 0;
    if (!part.empty()) out[count++] = {const_cast<std::byte*>(part.data()), part.size()};
  }
  return count;
}

void RequestProgress::advance(std::size_t bytes) {
  const std::size_t of_head = std::min(bytes, head_.size() - head_sent_);
  head_sent_ += of_head;
  offset_ += bytes - of_head;
  while (segment_ < body_.size() && offset_ >= body_[segment_].size()) {
    offset_ -= body_[segment_].size();
    ++segment_;
  }
}

void RequestProgress::forget() {
  head_.clear();
  body_ = {};
  head_sent_ = segment_ = offset_ = 0;
}

}  // namespace objectcache::http
