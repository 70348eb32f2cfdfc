#include "http/response_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace objectcache::http {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Feeds `text` in pieces of `step` bytes until the head is complete or wrong; the rest of the
// text that was not fed is dropped.
Result<bool> feed(ResponseParser& parser, std::string_view text, std::size_t step) {
  while (!text.empty()) {
    const Segment space = parser.space();
    EXPECT_FALSE(space.empty());
    const std::size_t n = std::min({step, text.size(), space.size()});
    std::memcpy(space.data(), text.data(), n);
    text.remove_prefix(n);
    auto done = parser.commit(n);
    if (!done || *done) return done;
  }
  return false;
}

constexpr std::string_view kAnswer =
    "HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\nETag: \"abc\"\r\n"
    "x-empty:\r\nContent-Range: bytes 0-3/9\r\n\r\nBODY";

TEST(ResponseParser, ReadsAHeadHoweverItIsCut) {
  for (std::size_t step = 1; step <= kAnswer.size(); ++step) {
    ResponseParser parser;
    parser.start(false);
    const auto done = feed(parser, kAnswer, step);
    ASSERT_TRUE(done && *done) << step;
    EXPECT_EQ(parser.head().status, 206);
    EXPECT_EQ(parser.head().content_length, 4U);
    EXPECT_EQ(find_header(parser.head().headers, "etag"), "\"abc\"");
    EXPECT_EQ(find_header(parser.head().headers, "X-EMPTY"), "");
    EXPECT_EQ(find_header(parser.head().headers, "absent"), std::nullopt);
    EXPECT_EQ(parser.framing(), BodyFraming::kLength);
    EXPECT_TRUE(parser.keep_alive());
    EXPECT_TRUE(std::string("BODY").starts_with(text_of(parser.rest())));
  }
}

TEST(ResponseParser, KeepsWhatCameBehindTheHead) {
  ResponseParser parser;
  ASSERT_TRUE(*feed(parser, kAnswer, 4096));
  EXPECT_EQ(text_of(parser.rest()), "BODY");
  parser.consume(3);
  EXPECT_EQ(text_of(parser.rest()), "Y");
  parser.consume(1);
  parser.start(false);
  ASSERT_TRUE(*feed(parser, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 7));
  EXPECT_EQ(parser.head().status, 404);
  EXPECT_EQ(parser.head().headers.size(), 1U) << "nothing is left of the answer before";
}

TEST(ResponseParser, SkipsInterimAnswers) {
  const std::string text =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\na: b\r\n\r\n" + std::string(kAnswer);
  for (const std::size_t step : {1UL, 3UL, 1000UL}) {
    ResponseParser parser;
    ASSERT_TRUE(*feed(parser, text, step));
    EXPECT_EQ(parser.head().status, 206);
    EXPECT_EQ(find_header(parser.head().headers, "a"), std::nullopt);
  }
}

TEST(ResponseParser, RefusesEndlessInterimAnswers) {
  std::string text;
  for (int i = 0; i < 9; ++i) text += "HTTP/1.1 100 Continue\r\n\r\n";
  ResponseParser parser;
  const auto done = feed(parser, text, 10);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kCorrupt);
}

struct FramingCase {
  std::string_view name;
  std::string_view text;
  bool head_request;
  BodyFraming framing;
  bool keep_alive;
  std::optional<std::uint64_t> length;
};

TEST(ResponseParser, TellsHowTheBodyEnds) {
  const FramingCase cases[] = {
      {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n", true, BodyFraming::kNone, true, 77},
      {"204", "HTTP/1.1 204 No Content\r\n\r\n", false, BodyFraming::kNone, true, {}},
      {"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, BodyFraming::kNone,
       true, 5},
      {"chunked",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n",
       false,
       BodyFraming::kChunked,
       true,
       {}},
      {"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n", false,
       BodyFraming::kLength, false, 1},
      {"until close", "HTTP/1.1 200 OK\r\n\r\n", false, BodyFraming::kUntilClose, false, {}},
      {"1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", false, BodyFraming::kLength, false,
       1},
      {"same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
       false, BodyFraming::kLength, true, 1},
      {"huge", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", false,
       BodyFraming::kLength, true, UINT64_MAX},
  };
  for (const FramingCase& c : cases) {
    ResponseParser parser;
    parser.start(c.head_request);
    const auto done = feed(parser, c.text, 64);
    ASSERT_TRUE(done && *done) << c.name;
    EXPECT_EQ(parser.framing(), c.framing) << c.name;
    EXPECT_EQ(parser.keep_alive(), c.keep_alive) << c.name;
    EXPECT_EQ(parser.head().content_length, c.length) << c.name;
  }
}

TEST(ResponseParser, RefusesWhatIsNotHttp) {
  constexpr std::string_view kBad[] = {
      "SSH-2.0-OpenSSH_9.2\r\n\r\n",
      "\x15\x03\x01\x01\x02\x02\x46xxxxxxxxxxxx\r\n\r\n",
      "HTTP/2 200 OK\r\n\r\n",
      "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\n\r\n",
      "HTTP/1.1 000 Nothing\r\n\r\n",
  };
  for (const std::string_view text : kBad) {
    ResponseParser parser;
    const auto done = feed(parser, text, 5);
    ASSERT_FALSE(done) << text;
    EXPECT_EQ(done.error().code, ErrorCode::kCorrupt) << text;
  }
}

TEST(ResponseParser, BoundsTheHead) {
  const auto answer = [](std::size_t bytes) {
    return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nx: " + std::string(bytes, 'y') + "\r\n\r\n";
  };
  ResponseParser parser;
  ASSERT_TRUE(*feed(parser, answer(31 * 1024), 2048));
  parser.start(false);
  auto done = feed(parser, answer(33 * 1024), 2048);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kLimitExceeded);
  // Many small ones count like a large one.
  parser.start(false);
  std::string many = "HTTP/1.1 200 OK\r\n";
  while (many.size() < 40 * 1024) many += "a: b\r\n";
  done = feed(parser, many, 100);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kLimitExceeded);
}

// ---------------------------------------------------------------- chunked coding

struct Decoded {
  bool good = true;
  bool done = false;
  std::string body;
  std::size_t rest = 0;  // Of the input, behind the end.
};

Decoded decode(std::string_view text, std::size_t step) {
  ChunkedDecoder decoder;
  Decoded out;
  std::size_t at = 0;
  while (at < text.size() && !out.done) {
    auto input = std::as_bytes(std::span(text.substr(at, step)));
    while (!input.empty() && !out.done) {
      const auto next = decoder.next(input);
      if (!next) {
        out.good = false;
        return out;
      }
      out.body += text_of(next->data);
      out.done = next->done;
      input = input.subspan(next->consumed);
      at += next->consumed;
    }
  }
  out.rest = text.size() - at;
  return out;
}

TEST(ChunkedDecoder, DecodesHoweverItIsCut) {
  constexpr std::string_view kText =
      "4\r\nWiki\r\n5;name=\"x\"\r\npedia\r\n00E \r\n in\r\n\r\nchunks.\r\n0\r\nTrailer: "
      "a\r\n\r\nNEXT";
  for (std::size_t step = 1; step <= kText.size(); ++step) {
    const Decoded out = decode(kText, step);
    EXPECT_TRUE(out.good && out.done) << step;
    EXPECT_EQ(out.body, "Wikipedia in\r\n\r\nchunks.") << step;
    EXPECT_EQ(out.rest, 4U) << step;
  }
}

TEST(ChunkedDecoder, IsNotDoneBeforeTheEnd) {
  constexpr std::string_view kText = "3\r\nabc\r\n0\r\n\r\n";
  for (std::size_t n = 0; n < kText.size(); ++n) {
    const Decoded out = decode(kText.substr(0, n), 100);
    EXPECT_TRUE(out.good) << n;
    EXPECT_FALSE(out.done) << n;
  }
}

TEST(ChunkedDecoder, RefusesWhatIsNoChunk) {
  for (const std::string_view text :
       {"x\r\n", "\r\n", "-1\r\n", "3\nabc\r\n", "3\r\nabcd\r\n", "3\r\nabc\n0\r\n\r\n",
        "1000000000000000\r\n", "0\r\n\n", "0\r\nab\n\r\n", "3x\r\nabc\r\n", "0\r\n\rx"}) {
    EXPECT_FALSE(decode(text, 3).good) << text;
  }
  EXPECT_FALSE(decode("0\r\n" + std::string(9000, 'a'), 512).good) << "endless trailer";
  EXPECT_FALSE(decode("1;" + std::string(9000, 'a'), 512).good) << "endless extension";
}

}  // namespace
}  // namespace objectcache::http
