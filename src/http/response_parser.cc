#include "http/response_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/asio.h"

// Asio's settings must come first.
#include <boost/beast/http/basic_parser.hpp>

namespace objectcache::http {

namespace beast = boost::beast;

namespace {

bool same_text(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

// Beast's parser of the head, writing straight into our ResponseHead.
class HeadParser final : public beast::http::basic_parser<false> {
 public:
  HeadParser(ResponseHead& head, std::size_t head_bytes_max, bool skip_body) : head_(head) {
    header_limit(static_cast<std::uint32_t>(head_bytes_max));
    body_limit(boost::none);
    skip(skip_body);
  }
  [[nodiscard]] bool unknown_coding() const { return unknown_coding_; }
  /// Those behind it in head.headers are left over.
  [[nodiscard]] std::size_t headers() const { return headers_; }

 private:
  using Code = beast::error_code;
  using Text = beast::string_view;

  void on_request_impl(beast::http::verb, Text, Text, int, Code&) override {}
  void on_response_impl(int status, Text, int, Code& error) override {
    head_.status = status;
    error = {};
  }
  void on_field_impl(beast::http::field name, Text name_text, Text value, Code& error) override {
    if (name == beast::http::field::transfer_encoding && !same_text(value, "chunked")) {
      unknown_coding_ = true;
    }
    // Strings of the answer before are filled anew: a head costs no allocations then.
    if (headers_ == head_.headers.size()) head_.headers.emplace_back();
    Header& header = head_.headers[headers_++];
    header.name.assign(name_text.data(), name_text.size());
    header.value.assign(value.data(), value.size());
    error = {};
  }
  void on_header_impl(Code& error) override { error = {}; }
  // The body is not Beast's business here: put() is never called again behind the head.
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Code& error) override {
    error = {};
  }
  std::size_t on_body_impl(Text, Code& error) override {
    error = {};
    return 0;
  }
  void on_chunk_header_impl(std::uint64_t, Text, Code& error) override { error = {}; }
  std::size_t on_chunk_body_impl(std::uint64_t, Text, Code& error) override {
    error = {};
    return 0;
  }
  void on_finish_impl(Code& error) override { error = {}; }

  ResponseHead& head_;
  std::size_t headers_ = 0;
  bool unknown_coding_ = false;
};

std::unexpected<Error> not_http(std::string_view why) {
  return fail(ErrorCode::kCorrupt,
              fmt::format("the server's answer is not HTTP/1.1: {} (is the endpoint right, and its "
                          "scheme, http or https?)",
                          why),
              "read answer");
}

}  // namespace

struct ResponseParser::Impl {
  explicit Impl(Limits l) : limits(l) {}

  Limits limits;
  std::vector<std::byte> buffer;  ///< Only grows, up to head_bytes_max and what space() adds.
  std::size_t begin = 0;          ///< Of what is not parsed or consumed yet.
  std::size_t end = 0;            ///< Of what was read.
  std::size_t head_bytes = 0;     ///< Parsed so far, interim answers included.
  unsigned interim = 0;
  bool skip_body = false;
  ResponseHead head;
  std::optional<HeadParser> parser;
  BodyFraming framing = BodyFraming::kNone;
  bool keep_alive = false;

  void restart_parser() {
    head.status = 0;
    head.content_length.reset();
    parser.emplace(head, limits.head_bytes_max, skip_body);
    parser->eager(false);
  }
  /// True: a final head is complete. False: more bytes are needed.
  Result<bool> parse();
  Result<bool> finish_head();
};

ResponseParser::ResponseParser() : ResponseParser(Limits{}) {}
ResponseParser::ResponseParser(Limits limits) : impl_(std::make_unique<Impl>(limits)) {
  start(false);
}
ResponseParser::~ResponseParser() = default;

void ResponseParser::start(bool answers_head_request) {
  impl_->begin = impl_->end = 0;
  impl_->head_bytes = 0;
  impl_->interim = 0;
  impl_->skip_body = answers_head_request;
  impl_->restart_parser();
}

Segment ResponseParser::space() {
  Impl& self = *impl_;
  const std::size_t want = self.end + self.limits.read_bytes;
  if (self.buffer.size() < want) self.buffer.resize(want);
  return Segment(self.buffer).subspan(self.end, self.limits.read_bytes);
}

Result<bool> ResponseParser::commit(std::size_t bytes) {
  impl_->end += bytes;
  return impl_->parse();
}

Result<bool> ResponseParser::Impl::parse() {
  for (;;) {
    beast::error_code error;
    const std::size_t used =
        parser->put(boost::asio::const_buffer(buffer.data() + begin, end - begin), error);
    begin += used;
    head_bytes += used;
    if (error == beast::http::error::need_more) {
      if (head_bytes + (end - begin) < limits.head_bytes_max) return false;
      error = beast::http::error::header_limit;
    }
    if (error == beast::http::error::header_limit || head_bytes > limits.head_bytes_max) {
      return fail(ErrorCode::kLimitExceeded,
                  fmt::format("the head of the answer exceeds {} bytes", limits.head_bytes_max),
                  "read answer");
    }
    if (error) return not_http(error.message());
    if (!parser->is_header_done()) {
      if (begin == end) return false;
      continue;
    }
    auto done = finish_head();
    if (!done || *done) return done;
    restart_parser();
    if (begin == end) return false;
  }
}

Result<bool> ResponseParser::Impl::finish_head() {
  if (head.status / 100 == 1) {
    if (head.status == 101) return not_http("it switches protocols unasked");
    if (++interim > limits.interim_max) return not_http("too many interim answers");
    return false;
  }
  if (head.status < 200 || head.status > 999) return not_http("status out of range");
  if (parser->unknown_coding()) return not_http("unknown transfer coding");
  head.headers.resize(parser->headers());
  if (const auto length = parser->content_length()) head.content_length = *length;
  keep_alive = parser->keep_alive();
  if (skip_body || head.status == 204 || head.status == 304) {
    framing = BodyFraming::kNone;
  } else if (parser->chunked()) {
    framing = BodyFraming::kChunked;
    head.content_length.reset();
  } else if (head.content_length) {
    framing = BodyFraming::kLength;
  } else {
    framing = BodyFraming::kUntilClose;
    keep_alive = false;
  }
  return true;
}

ResponseHead& ResponseParser::head() { return impl_->head; }
BodyFraming ResponseParser::framing() const { return impl_->framing; }
bool ResponseParser::keep_alive() const { return impl_->keep_alive; }

std::span<const std::byte> ResponseParser::rest() const {
  return std::span(impl_->buffer).subspan(impl_->begin, impl_->end - impl_->begin);
}

void ResponseParser::consume(std::size_t bytes) { impl_->begin += bytes; }

// ---------------------------------------------------------------- chunked coding

namespace {
constexpr unsigned kOverheadMax = 8 * 1024;
constexpr unsigned kDigitsMax = 15;  // So that sizes and their sums stay far from 2^64.

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
}  // namespace

// One byte that is not chunk data. False: it has no place here.
bool ChunkedDecoder::accept(char c) {
  const auto go = [this](bool right, State next) {
    state_ = next;
    return right;
  };
  switch (state_) {
    case State::kSize:
      if (const int value = hex_value(c); value >= 0) {
        left_ = left_ * 16 + static_cast<unsigned>(value);
        return ++digits_ <= kDigitsMax;
      }
      if (digits_ == 0) return false;
      if (c == '\r') return go(true, State::kSizeLf);
      return go(c == ';' || c == ' ' || c == '\t', State::kExtension);
    case State::kExtension:
      if (c == '\r') return go(true, State::kSizeLf);
      return c != '\n' && ++overhead_ <= kOverheadMax;
    case State::kSizeLf:
      digits_ = 0;
      return go(c == '\n', left_ == 0 ? State::kTrailerStart : State::kData);
    case State::kDataCr:
      return go(c == '\r', State::kDataLf);
    case State::kDataLf:
      return go(c == '\n', State::kSize);
    case State::kTrailerStart:
      if (c == '\r') return go(true, State::kEndLf);
      return go(c != '\n' && ++overhead_ <= kOverheadMax, State::kTrailer);
    case State::kTrailer:
      if (c == '\r') return go(true, State::kTrailerLf);
      return c != '\n' && ++overhead_ <= kOverheadMax;
    case State::kTrailerLf:
      return go(c == '\n', State::kTrailerStart);
    case State::kEndLf:
      return go(c == '\n', State::kDone);
    case State::kData:
    case State::kDone:
      break;
  }
  return false;
}

Result<ChunkedDecoder::Step> ChunkedDecoder::next(std::span<const std::byte> input) {
  Step step;
  while (step.consumed < input.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const std::size_t take =
          static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - step.consumed));
      step.data = input.subspan(step.consumed, take);
      step.consumed += take;
      left_ -= take;
      if (left_ == 0) state_ = State::kDataCr;
      return step;
    }
    if (!accept(static_cast<char>(input[step.consumed++]))) {
      return fail(ErrorCode::kCorrupt, "the body is not in valid chunked transfer coding",
                  "read answer");
    }
  }
  step.done = state_ == State::kDone;
  return step;
}

}  // namespace objectcache::http
