// What a server sends: any bytes give answers or an error, within bounds, and the same ones however
// the network cuts them. The first byte of the input chooses the cut, the second whether the
// request was a HEAD and how the body is taken.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "http/body_target.h"
#include "http/response_parser.h"

namespace {

using namespace objectcache;
using namespace objectcache::http;

void check(bool right) {
  if (!right) std::abort();
}

struct Outcome {
  bool failed = false;
  int status = 0;
  std::size_t headers = 0;
  bool complete = false;
  std::string body;
};

// Takes the body from `input`, cut in pieces of `step`.
void read_body(ResponseParser& parser, BodyTarget& target, std::span<const std::byte> input,
               std::size_t step, Outcome& out) {
  ChunkedDecoder decoder;
  while (!input.empty() && target.remaining() != 0 && !out.complete) {
    const auto piece = input.first(std::min(step, input.size()));
    ChunkedDecoder::Step part{.consumed = piece.size(), .data = piece, .done = false};
    if (parser.framing() == BodyFraming::kChunked) {
      const auto next = decoder.next(piece);
      out.failed = !next;
      if (!next) return;
      check(next->consumed > 0 && next->consumed <= piece.size());
      check(next->data.size() <= next->consumed);
      part = *next;
    } else if (const auto left = target.remaining()) {
      part.data =
          piece.first(static_cast<std::size_t>(std::min<std::uint64_t>(*left, piece.size())));
      part.consumed = part.data.size();
    }
    const auto verdict = target.put(part.data);
    out.failed = !verdict;
    if (!verdict || *verdict == BodyTarget::Verdict::kCloseHere) return;
    out.complete = part.done;
    input = input.subspan(part.consumed);
  }
  out.complete = out.complete || target.remaining() == 0;
}

Outcome run(std::span<const std::byte> input, bool head_request, BodyPlan::Kind kind,
            std::size_t step) {
  ResponseParser parser;
  parser.start(head_request);
  Outcome out;
  for (;;) {
    const Segment space = parser.space();
    check(!space.empty());
    const std::size_t n = std::min({space.size(), input.size(), step});
    if (n == 0) return out;
    std::memcpy(space.data(), input.data(), n);
    input = input.subspan(n);
    const auto done = parser.commit(n);
    out.failed = !done;
    if (!done) return out;
    if (*done) break;
  }
  const ResponseHead& head = parser.head();
  out.status = head.status;
  out.headers = head.headers.size();
  check(head.status >= 200 && head.status <= 999);
  check(parser.framing() != BodyFraming::kLength || head.content_length.has_value());
  std::string rest(reinterpret_cast<const char*>(parser.rest().data()), parser.rest().size());
  rest.append(reinterpret_cast<const char*>(input.data()), input.size());

  std::array<std::byte, 64> memory{};
  BodyTarget target;
  BodyPlan plan{.kind = kind, .segments = {}, .bytes_max = 256};
  if (kind == BodyPlan::Kind::kSegments) {
    plan.segments = {Segment(memory).first(10), Segment{}, Segment(memory).subspan(10)};
  }
  const auto verdict = target.start(plan, parser.framing(), head.content_length);
  out.failed = !verdict;
  if (!verdict || *verdict == BodyTarget::Verdict::kCloseHere) return out;
  read_body(parser, target, std::as_bytes(std::span(rest)), step, out);
  if (out.failed || !out.complete) return out;
  auto body = target.finish();
  out.failed = !body;
  if (body) out.body = std::move(*body);
  check(out.body.size() <= 256);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t step = data[0] + std::size_t{1};
  const bool head_request = (data[1] & 4U) != 0;
  const auto kind = static_cast<BodyPlan::Kind>(data[1] & 3U);
  const auto input = std::as_bytes(std::span(data, size).subspan(2));
  const Outcome one = run(input, head_request, kind, step);
  const Outcome other = run(input, head_request, kind, 2048);
  // What breaks off may do so before or behind the place where it is wrong; what is complete may not
  // depend on the cut.
  check(one.status == other.status && one.headers == other.headers);
  if (one.complete || other.complete) {
    check(one.complete == other.complete && one.failed == other.failed && one.body == other.body);
  }
  return 0;
}
