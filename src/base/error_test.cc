#include "objectcache/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace objectcache {
namespace {

TEST(Error, LineNamesActionKeyCodeAndCause) {
  const Error error{.code = ErrorCode::kThrottled,
                    .message = "the store asks for fewer requests",
                    .action = "GET",
                    .key = "s3://b/k",
                    .s3_code = "SlowDown",
                    .request_id = "tx1",
                    .http_status = 503};
  EXPECT_EQ(error.to_string(),
            "GET s3://b/k: throttled: HTTP 503 SlowDown (request id tx1): "
            "the store asks for fewer requests");
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 1; i <= 14; ++i) names.insert(error_code_name(static_cast<ErrorCode>(i)));
  EXPECT_EQ(names.size(), 14U);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Error, OnlyPassingTroublesAreRetryable) {
  EXPECT_TRUE(is_retryable(ErrorCode::kUnavailable));
  EXPECT_TRUE(is_retryable(ErrorCode::kThrottled));
  EXPECT_FALSE(is_retryable(ErrorCode::kCorrupt));
  EXPECT_FALSE(is_retryable(ErrorCode::kCancelled));
  EXPECT_FALSE(is_retryable(ErrorCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace objectcache
