#include "fake_s3/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "s3/ranges.h"

namespace objectcache::fake_s3 {
namespace {

using K = FaultKind;
constexpr std::size_t kDefaultPieceBytes = 64 * 1024;

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 412:
      return "Precondition Failed";
    case 416:
      return "Range Not Satisfiable";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Other";
  }
}

// Gives the answer bytes of its own, so that a fault may change them.
void replace_body(Answer& answer, std::vector<std::byte> bytes) {
  auto object = std::make_shared<Object>();
  object->bytes = std::move(bytes);
  answer.body = object->bytes;
  answer.object = std::move(object);
}

std::vector<std::byte> copy_of_body(const Answer& answer) {
  const auto bytes = answer.bytes();
  return {bytes.begin(), bytes.end()};
}

void shift_content_range(Answer& answer, const std::string& text) {
  for (auto& [name, value] : answer.headers) {
    if (name != "Content-Range") continue;
    if (!text.empty()) {
      value = text;
    } else if (const auto told = s3::parse_content_range(value); told && told->range) {
      value = s3::format_content_range(
          {.offset = told->range->offset + 1, .length = told->range->length},
          told->object_bytes.value_or(0) + 1);
    }
  }
}

// Faults that change what is said, not how it is sent.
void spoil_answer(Answer& answer, const Fault& fault) {
  switch (fault.kind) {
    case K::kFlipBit:
      if (auto bytes = copy_of_body(answer); !bytes.empty()) {
        bytes[fault.bytes % bytes.size()] ^= std::byte{1} << (fault.bytes % 8);
        replace_body(answer, std::move(bytes));
      }
      break;
    case K::kShortBody:
      if (auto bytes = copy_of_body(answer); !bytes.empty()) {
        bytes.resize(bytes.size() -
                     std::min<std::size_t>(bytes.size(), std::max<std::uint64_t>(fault.bytes, 1)));
        replace_body(answer, std::move(bytes));
      }
      break;
    case K::kOverlongBody: {
      auto bytes = copy_of_body(answer);
      bytes.resize(bytes.size() + std::max<std::uint64_t>(fault.bytes, 1), std::byte{0xee});
      replace_body(answer, std::move(bytes));
      break;
    }
    case K::kBadContentRange:
      shift_content_range(answer, fault.text);
      break;
    case K::kNoContentRange:
      answer.remove_header("Content-Range");
      break;
    case K::kRangeAs200:
      if (answer.status == 206) answer.status = 200;
      break;
    case K::kNoEtag:
      answer.remove_header("ETag");
      break;
    case K::kOtherEtag:
      answer.set_header("ETag", fault.text.empty() ? "\"not-the-etag\"" : fault.text);
      break;
    default:
      break;
  }
}

// How the bytes go out.
struct Sending {
  std::size_t piece_bytes = SIZE_MAX;
  std::chrono::nanoseconds pause{0};
  std::size_t bytes_max = SIZE_MAX;  // of the body; then `end` applies
  enum class End : std::uint8_t { kKeep, kClose, kReset, kStall } end = End::kKeep;
  bool chunked = false;
  std::size_t trailing_bytes = 0;
};

Sending sending_of(std::span<const Fault> faults, bool close_after) {
  Sending out;
  if (close_after) out.end = Sending::End::kClose;
  const auto cut = [&](std::size_t bytes, Sending::End end) {
    out.bytes_max = bytes;
    out.end = end;
  };
  for (const Fault& fault : faults) {
    switch (fault.kind) {
      case K::kReset:
        cut(fault.bytes, Sending::End::kReset);
        break;
      case K::kTruncateBody:
        cut(fault.bytes, Sending::End::kClose);
        break;
      case K::kStallAfterHead:
        cut(0, Sending::End::kStall);
        break;
      case K::kStallInBody:
        cut(fault.bytes, Sending::End::kStall);
        break;
      case K::kSlowBody:
        out.piece_bytes = fault.bytes == 0 ? kDefaultPieceBytes : fault.bytes;
        out.pause = fault.delay;
        break;
      case K::kChunked:
        out.chunked = true;
        out.piece_bytes = fault.bytes == 0 ? kDefaultPieceBytes : fault.bytes;
        break;
      case K::kTrailingBytes:
        out.trailing_bytes = std::max<std::uint64_t>(fault.bytes, 1);
        break;
      case K::kCloseAfter:
        out.end = Sending::End::kClose;
        break;
      default:
        break;
    }
  }
  return out;
}

std::string head_of(const Answer& answer, const Sending& sending, const DeliveryFrame& frame) {
  std::string out;
  out.reserve(512);
  fmt::format_to(std::back_inserter(out),
                 "HTTP/1.1 {} {}\r\nServer: fake-s3\r\nDate: {}\r\nx-amz-request-id: {}\r\n",
                 answer.status, reason_of(answer.status), frame.date, frame.request_id);
  for (const auto& [name, value] : answer.headers) {
    fmt::format_to(std::back_inserter(out), "{}: {}\r\n", name, value);
  }
  const bool has_body = answer.status != 204 && answer.status != 304;
  if (has_body && sending.chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  } else if (has_body) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", answer.bytes().size());
  }
  if (sending.end == Sending::End::kClose && sending.bytes_max == SIZE_MAX) {
    out += "Connection: close\r\n";
  }
  out += "\r\n";
  return out;
}

// Sends head and body in pieces; false: the peer has gone.
bool send_pieces(Wire& wire, std::string head, std::span<const std::byte> body, bool whole,
                 const Sending& sending) {
  if (!sending.chunked && body.size() <= sending.piece_bytes) return wire.write(head, body);
  while (!body.empty()) {
    const auto piece = body.first(std::min(sending.piece_bytes, body.size()));
    body = body.subspan(piece.size());
    if (sending.chunked) head += fmt::format("{:x}\r\n", piece.size());
    if (!wire.write(head, piece)) return false;
    head = sending.chunked ? "\r\n" : "";
    if (sending.pause.count() > 0 && !body.empty() && !wire.wait(sending.pause)) return false;
  }
  if (sending.chunked && whole) head += "0\r\n\r\n";
  return head.empty() || wire.write(head, {});
}

}  // namespace

bool deliver(Wire& wire, Answer answer, std::span<const Fault> faults, const DeliveryFrame& frame) {
  for (const Fault& fault : faults) spoil_answer(answer, fault);
  const Sending sending = sending_of(faults, frame.close_after);
  std::string head = head_of(answer, sending, frame);
  std::span<const std::byte> body;
  if (!answer.head_only && answer.status != 204 && answer.status != 304) body = answer.bytes();
  const bool whole = sending.bytes_max >= body.size();
  if (!whole) body = body.first(sending.bytes_max);
  if (!send_pieces(wire, std::move(head), body, whole, sending)) {
    wire.reset();
    return false;
  }
  if (sending.trailing_bytes > 0) {
    const std::vector<std::byte> extra(sending.trailing_bytes, std::byte{'x'});
    if (!wire.write({}, extra)) return false;
  }
  switch (sending.end) {
    case Sending::End::kKeep:
      return true;
    case Sending::End::kClose:
      wire.close();
      return false;
    case Sending::End::kReset:
      wire.reset();
      return false;
    case Sending::End::kStall:
      wire.wait_for_end();
      return false;
  }
  return false;
}

}  // namespace objectcache::fake_s3
