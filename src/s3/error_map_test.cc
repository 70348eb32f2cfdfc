#include "s3/error_map.h"

#include <gtest/gtest.h>

namespace objectcache::s3 {
namespace {

FailedAnswer answer(int status, std::string_view code, std::string_view message = {}) {
  FailedAnswer out;
  out.status = status;
  out.document.code = code;
  out.document.message = message;
  out.now = *parse_amz_date("20260102T030405Z");
  out.signing_region = "us-east-1";
  return out;
}

TEST(MeaningOf, TableOfCodesAndStatuses) {
  struct Case {
    int status;
    std::string_view s3_code;
    FailureKind kind;
    ErrorCode code;
    bool retryable;
  };
  using K = FailureKind;
  using C = ErrorCode;
  const Case cases[] = {
      {404, "NoSuchKey", K::kMissing, C::kNotFound, false},
      {404, "", K::kMissing, C::kNotFound, false},
      {404, "NoSuchBucket", K::kBucketMissing, C::kNotFound, false},
      {503, "SlowDown", K::kError, C::kThrottled, true},
      {429, "", K::kError, C::kThrottled, true},
      {503, "", K::kError, C::kUnavailable, true},
      {500, "InternalError", K::kError, C::kUnavailable, true},
      {500, "", K::kError, C::kUnavailable, true},
      {502, "", K::kError, C::kUnavailable, true},
      {504, "", K::kError, C::kUnavailable, true},
      {599, "Odd", K::kError, C::kUnavailable, true},
      {400, "RequestTimeout", K::kError, C::kUnavailable, true},
      {403, "AccessDenied", K::kError, C::kPermissionDenied, false},
      {403, "SignatureDoesNotMatch", K::kError, C::kPermissionDenied, false},
      {403, "InvalidAccessKeyId", K::kError, C::kPermissionDenied, false},
      {403, "", K::kError, C::kPermissionDenied, false},
      {400, "ExpiredToken", K::kCredentialsExpired, C::kPermissionDenied, false},
      {403, "RequestTimeTooSkewed", K::kClockSkew, C::kPermissionDenied, false},
      {301, "PermanentRedirect", K::kWrongRegion, C::kInvalidArgument, false},
      {301, "", K::kWrongRegion, C::kInvalidArgument, false},
      {307, "TemporaryRedirect", K::kWrongRegion, C::kUnavailable, true},
      {412, "PreconditionFailed", K::kPreconditionFailed, C::kConflict, false},
      {412, "", K::kPreconditionFailed, C::kConflict, false},
      {409, "ConditionalRequestConflict", K::kWriteRace, C::kUnavailable, true},
      {416, "InvalidRange", K::kOutOfRange, C::kInvalidArgument, false},
      {416, "", K::kOutOfRange, C::kInvalidArgument, false},
      {400, "EntityTooLarge", K::kError, C::kInvalidArgument, false},
      {403, "QuotaExceeded", K::kError, C::kOutOfSpace, false},
      {507, "", K::kError, C::kOutOfSpace, false},
      {501, "NotImplemented", K::kError, C::kUnsupported, false},
      {400, "XAmzContentSHA256Mismatch", K::kError, C::kCorrupt, false},
      {418, "", K::kError, C::kInvalidArgument, false},
      {0, "", K::kError, C::kUnavailable, true},
      {204, "", K::kError, C::kUnavailable, true},
  };
  for (const Case& c : cases) {
    const auto meaning = meaning_of(answer(c.status, c.s3_code));
    EXPECT_EQ(meaning.kind, c.kind) << c.status << c.s3_code;
    EXPECT_EQ(meaning.error.code, c.code) << c.status << c.s3_code;
    EXPECT_EQ(meaning.retryable, c.retryable) << c.status << c.s3_code;
    EXPECT_EQ(meaning.error.http_status, c.status);
    EXPECT_EQ(meaning.error.s3_code, c.s3_code);
    EXPECT_FALSE(meaning.error.message.empty()) << c.status << c.s3_code;
  }
}

TEST(MeaningOf, RetryAfterInSecondsAndAsADate) {
  auto a = answer(503, "");
  a.retry_after = "7";
  EXPECT_EQ(meaning_of(a).error.code, ErrorCode::kThrottled);
  EXPECT_EQ(meaning_of(a).retry_after, std::chrono::seconds(7));
  a.retry_after = "Fri, 02 Jan 2026 03:04:15 GMT";
  EXPECT_EQ(meaning_of(a).retry_after, std::chrono::seconds(10));
  a.retry_after = "Fri, 02 Jan 2026 03:04:00 GMT";
  EXPECT_EQ(meaning_of(a).retry_after, std::chrono::seconds(0));
  a.retry_after = "999999999";
  EXPECT_EQ(meaning_of(a).retry_after, std::chrono::hours(1));
  for (const char* text : {"soon", "-1", "1.5", "99999999999999"}) {
    a.retry_after = text;
    EXPECT_EQ(meaning_of(a).retry_after, std::nullopt) << text;
  }
}

TEST(MeaningOf, ClockSkewShowsBothClocks) {
  auto a = answer(403, "RequestTimeTooSkewed");
  a.date = "Fri, 02 Jan 2026 04:04:05 GMT";
  const auto meaning = meaning_of(a);
  EXPECT_EQ(meaning.clock_offset, std::chrono::hours(1));
  EXPECT_NE(meaning.error.message.find("2026-01-02T03:04:05"), std::string::npos);
  EXPECT_NE(meaning.error.message.find("2026-01-02T04:04:05"), std::string::npos);
  a.document.server_time = "2026-01-02T03:00:00Z";  // more exact than the Date header
  EXPECT_EQ(meaning_of(a).clock_offset, std::chrono::seconds(-245));
  a.document.server_time.clear();
  a.date = {};
  EXPECT_EQ(meaning_of(a).clock_offset, std::nullopt);
}

TEST(MeaningOf, WrongRegionNamesTheRightOne) {
  auto a = answer(301, "PermanentRedirect");
  a.bucket_region = "eu-west-1";
  EXPECT_EQ(meaning_of(a).right_region, "eu-west-1");
  EXPECT_NE(meaning_of(a).error.message.find("us-east-1"), std::string::npos);
  EXPECT_NE(meaning_of(a).error.message.find("region=eu-west-1"), std::string::npos);
  a.document.region = "eu-north-1";
  EXPECT_EQ(meaning_of(a).right_region, "eu-north-1");
  a = answer(307, "TemporaryRedirect");
  a.location = "http://other:80/b/k";
  EXPECT_EQ(meaning_of(a).right_endpoint, "http://other:80/b/k");
  // The same code also stands for a header that is malformed for another reason.
  a = answer(400, "AuthorizationHeaderMalformed", "the credential is bad");
  EXPECT_EQ(meaning_of(a).kind, FailureKind::kError);
  a.document.region = "eu-west-1";
  EXPECT_EQ(meaning_of(a).kind, FailureKind::kWrongRegion);
}

TEST(MeaningOf, KeepsTheStoresWordsOnOneShortLine) {
  auto a = answer(500, "InternalError", "line\none\x01" + std::string(1000, 'x'));
  a.request_id = "tx-1";
  const auto error = meaning_of(a).error;
  EXPECT_EQ(error.request_id, "tx-1");
  EXPECT_LT(error.message.size(), 500U);
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  EXPECT_NE(error.message.find("line one"), std::string::npos);
  a.document.request_id = "tx-2";
  EXPECT_EQ(meaning_of(a).error.request_id, "tx-2");
}

TEST(MeaningOf, FailuresInsideADelete) {
  const auto denied =
      meaning_of(DeleteFailure{.key = "k", .code = "AccessDenied", .message = "no"});
  EXPECT_EQ(denied.error.code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(denied.error.http_status, 0);
  EXPECT_EQ(meaning_of(DeleteFailure{.key = "k", .code = "Odd", .message = ""}).error.code,
            ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace objectcache::s3
