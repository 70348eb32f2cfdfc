#include "http/request_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace objectcache::http {
namespace {

constexpr std::byte kBody[5] = {};

TEST(RequestHead, WritesWhatIsMissing) {
  const auto get = write_request_head(
      {.method = "GET", .target = "/b/k?x=1", .headers = {{"Range", "bytes=0-9"}}, .body = {}},
      "h:80");
  ASSERT_TRUE(get);
  EXPECT_EQ(*get, "GET /b/k?x=1 HTTP/1.1\r\nHost: h:80\r\nRange: bytes=0-9\r\n\r\n");
  const auto put = write_request_head(
      {.method = "PUT", .target = "/", .headers = {{"host", "other"}}, .body = {kBody, kBody}},
      "h");
  ASSERT_TRUE(put);
  EXPECT_EQ(*put, "PUT / HTTP/1.1\r\nhost: other\r\nContent-Length: 10\r\n\r\n");
  const auto empty =
      write_request_head({.method = "POST", .target = "/", .headers = {}, .body = {}}, "h");
  ASSERT_TRUE(empty);
  EXPECT_EQ(*empty, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
}

TEST(RequestHead, RefusesWhatBreaksOut) {
  const Request bad[] = {
      {.method = "", .target = "/", .headers = {}, .body = {}},
      {.method = "GE T", .target = "/", .headers = {}, .body = {}},
      {.method = "GET", .target = "", .headers = {}, .body = {}},
      {.method = "GET", .target = "/a b", .headers = {}, .body = {}},
      {.method = "GET", .target = "/a\r\nx: y", .headers = {}, .body = {}},
      {.method = "GET", .target = "/\xc3\xa4", .headers = {}, .body = {}},
      {.method = "GET", .target = "/", .headers = {{"a b", "c"}}, .body = {}},
      {.method = "GET", .target = "/", .headers = {{"", "c"}}, .body = {}},
      {.method = "GET", .target = "/", .headers = {{"a", "b\r\nc: d"}}, .body = {}},
      {.method = "PUT", .target = "/", .headers = {{"Content-Length", "4"}}, .body = {kBody}},
      {.method = "PUT", .target = "/", .headers = {{"Transfer-Encoding", "chunked"}}, .body = {}},
  };
  for (const Request& request : bad) {
    const auto head = write_request_head(request, "h");
    ASSERT_FALSE(head) << request.method << request.target;
    EXPECT_EQ(head.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(
      write_request_head({.method = "GET", .target = "/", .headers = {}, .body = {}}, "h\nx"));
}

TEST(RequestProgress, SendsAllInOrderWhateverTheSteps) {
  const std::string a = "abc";
  const std::string b = "defghij";
  const std::vector<ConstSegment> body = {
      {}, std::as_bytes(std::span(a)), {}, std::as_bytes(std::span(b)), {}};
  for (std::size_t step = 1; step <= 14; ++step) {
    RequestProgress progress;
    progress.start("HEAD", body);
    std::string sent;
    while (!progress.done()) {
      iovec buffers[2];
      const std::size_t count = progress.next(buffers);
      ASSERT_GT(count, 0U);
      std::size_t left = step;
      for (std::size_t i = 0; i < count && left > 0; ++i) {
        const std::size_t n = std::min(left, buffers[i].iov_len);
        sent.append(static_cast<const char*>(buffers[i].iov_base), n);
        left -= n;
      }
      progress.advance(step - left);
    }
    EXPECT_EQ(sent, "HEADabcdefghij") << step;
  }
}

}  // namespace
}  // namespace objectcache::http
