#include "s3/sigv4.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace objectcache::s3 {
namespace {

// Keys and time of "Examples: Signature Calculations in AWS Signature Version 4" (S3's API
// reference).
const Credentials kExample{.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                           .secret_access_key = Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
                           .session_token = {},
                           .expires_at = {}};
const WallTime kExampleTime = *parse_amz_date("20130524T000000Z");
constexpr std::string_view kExampleHost = "examplebucket.s3.amazonaws.com";

std::string signature_in(std::string_view authorization) {
  const auto parsed = parse_authorization(authorization);
  return parsed ? std::string(parsed->signature) : "unreadable: " + std::string(authorization);
}

struct S3Example {
  std::string_view method;
  std::string_view path;
  std::string_view query;
  std::vector<HeaderView> headers;
  std::string_view payload_hash;
  std::string_view signed_headers;
  std::string_view signature;
};
const S3Example kS3Examples[] = {
    {"GET",
     "/test.txt",
     "",
     {{"Host", kExampleHost}, {"Range", "bytes=0-9"}},
     kEmptyPayload,
     "host;range;x-amz-content-sha256;x-amz-date",
     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {"PUT",
     "/test%24file.text",
     "",
     {{"Host", kExampleHost},
      {"Date", "Fri, 24 May 2013 00:00:00 GMT"},
      {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
     "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
     "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {"GET",
     "/",
     "lifecycle",
     {{"Host", kExampleHost}},
     kEmptyPayload,
     "host;x-amz-content-sha256;x-amz-date",
     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {"GET",
     "/",
     "max-keys=2&prefix=J",
     {{"Host", kExampleHost}},
     kEmptyPayload,
     "host;x-amz-content-sha256;x-amz-date",
     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

TEST(Signer, MatchesTheExamplesOfS3) {
  Signer signer("us-east-1");
  for (const S3Example& e : kS3Examples) {
    const RequestView request{.method = e.method,
                              .path = e.path,
                              .query = e.query,
                              .headers = e.headers,
                              .payload_hash = e.payload_hash};
    const auto out = signer.sign(request, kExample, kExampleTime);
    EXPECT_EQ(out.authorization,
              "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
              ", SignedHeaders=" +
                  std::string(e.signed_headers) + ", Signature=" + std::string(e.signature));
    EXPECT_EQ(out.x_amz_date, "20130524T000000Z");
    EXPECT_EQ(out.x_amz_content_sha256, e.payload_hash);
    EXPECT_EQ(out.x_amz_security_token, "");
  }
}

// Cases of AWS's published signature test suite that do not ask for normalised paths.
struct SuiteCase {
  std::string_view name;
  std::string_view method;
  std::string_view path;
  std::string_view query;
  std::vector<HeaderView> headers;  // beside host and x-amz-date
  std::string_view payload_hash;
  std::string_view signature;
};
const SuiteCase kSuite[] = {
    {"get-header-value-trim",
     "GET",
     "/",
     "",
     {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}},
     kEmptyPayload,
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"get-header-key-duplicate",
     "GET",
     "/",
     "",
     {{"My-Header1", "value2"}, {"my-header1", "value2"}, {"My-Header1", "value1"}},
     kEmptyPayload,
     "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
    {"get-vanilla-query-order-encoded",
     "GET",
     "/",
     "Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
     {},
     kEmptyPayload,
     "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
    {"get-vanilla-query-order-key-case",
     "GET",
     "/",
     "Param2=value2&Param1=value1",
     {},
     kEmptyPayload,
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-query-unreserved",
     "GET",
     "/",
     "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz="
     "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
     {},
     kEmptyPayload,
     "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
    {"get-vanilla-utf8-query",
     "GET",
     "/",
     "\xe1\x88\xb4=bar",
     {},
     kEmptyPayload,
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"get-vanilla-with-session-token",
     "GET",
     "/",
     "",
     {{"X-Amz-Security-Token", "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"}},
     kEmptyPayload,
     "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"},
    {"get-slashes-unnormalized",
     "GET",
     "//example//",
     "",
     {},
     kEmptyPayload,
     "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"},
    {"get-space-unnormalized",
     "GET",
     "/example%20space/",
     "",
     {},
     kEmptyPayload,
     "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
    {"get-utf8",
     "GET",
     "/%E1%88%B4",
     "",
     {},
     kEmptyPayload,
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"post-x-www-form-urlencoded",
     "POST",
     "/",
     "",
     {{"Content-Type", "application/x-www-form-urlencoded"},
      {"Content-Length", "13"},
      {"x-amz-content-sha256", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"}},
     "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
     "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"},
};

TEST(CanonicalRequest, MatchesThePublishedSuite) {
  const Credentials credentials{
      .access_key_id = "AKIDEXAMPLE",
      .secret_access_key = Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
      .session_token = {},
      .expires_at = {}};
  for (const SuiteCase& c : kSuite) {
    std::vector<HeaderView> headers = c.headers;
    headers.push_back({"Host", "example.amazonaws.com"});
    headers.push_back({"X-Amz-Date", "20150830T123600Z"});
    sort_headers(headers);
    const RequestView request{.method = c.method,
                              .path = c.path,
                              .query = c.query,
                              .headers = headers,
                              .payload_hash = c.payload_hash};
    std::string canonical;
    ASSERT_TRUE(append_canonical_request(canonical, request, headers));
    SigningKey key;
    const Scope scope{.day = "20150830", .region = "us-east-1", .service = "service"};
    EXPECT_EQ(key.sign(credentials, scope, "20150830T123600Z", canonical), c.signature)
        << c.name << "\n"
        << canonical;
  }
}

TEST(CanonicalRequest, RefusesAStrayPercent) {
  std::string out;
  EXPECT_FALSE(append_canonical_request(
      out, {.method = "GET", .path = "/a%2", .query = {}, .headers = {}, .payload_hash = {}}, {}));
  EXPECT_FALSE(append_canonical_request(
      out, {.method = "GET", .path = "/", .query = "a=%zz", .headers = {}, .payload_hash = {}},
      {}));
}

// ---------------------------------------------------------------- the checker

// A signed GET that a test may spoil before it is checked.
struct SignedGet {
  std::string method = "GET";
  std::string path = "/bucket/a%20key";
  std::string query = "list-type=2&prefix=a%2Fb";
  std::vector<std::pair<std::string, std::string>> headers{{"Host", "store:7480"},
                                                           {"Range", "bytes=0-9"}};

  explicit SignedGet(const Credentials& credentials = kExample, WallTime when = kExampleTime,
                     std::string_view payload = kEmptyPayload) {
    Signer signer("us-east-1");
    const auto views = header_views();
    const auto out = signer.sign(
        {.method = method, .path = path, .query = query, .headers = views, .payload_hash = payload},
        credentials, when);
    headers.emplace_back("X-Amz-Date", out.x_amz_date);
    headers.emplace_back("X-Amz-Content-Sha256", out.x_amz_content_sha256);
    headers.emplace_back("Authorization", out.authorization);
    if (!out.x_amz_security_token.empty()) {
      headers.emplace_back("X-Amz-Security-Token", out.x_amz_security_token);
    }
  }
  std::vector<HeaderView> header_views() const {
    std::vector<HeaderView> views;
    for (const auto& [name, value] : headers) views.push_back({name, value});
    return views;
  }
  std::string& header(std::string_view name) {
    for (auto& [n, value] : headers) {
      if (n == name) return value;
    }
    std::abort();
  }
  std::expected<CheckedRequest, CheckProblem> check(const Credentials& known = kExample,
                                                    WallTime now = kExampleTime,
                                                    std::string region = "us-east-1") const {
    Checker checker({.region = std::move(region)}, [&](std::string_view id) {
      return id == known.access_key_id ? &known : nullptr;
    });
    const auto views = header_views();
    return checker.check(
        {.method = method, .path = path, .query = query, .headers = views, .payload_hash = {}},
        now);
  }
};

CheckFailure failure_of(const std::expected<CheckedRequest, CheckProblem>& result) {
  EXPECT_FALSE(result.has_value());
  return result.has_value() ? CheckFailure{} : result.error().failure;
}

TEST(Checker, AcceptsWhatTheSignerMakes) {
  const auto result = SignedGet().check();
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->access_key_id, kExample.access_key_id);
  EXPECT_EQ(result->payload_sha256_hex, kEmptyPayload);
  const auto unsigned_body = SignedGet(kExample, kExampleTime, kUnsignedPayload).check();
  ASSERT_TRUE(unsigned_body.has_value());
  EXPECT_EQ(unsigned_body->payload_sha256_hex, "");
}

TEST(Checker, AcceptsAnotherSpellingOfTheSameRequest) {
  SignedGet get;
  get.path = "/bucket/%61%20key";
  get.query = "prefix=a/b&list-type=2";
  EXPECT_TRUE(get.check().has_value());
}

TEST(Checker, AddedHeadersThatNeedNoSignatureAreFine) {
  SignedGet get;
  get.headers.emplace_back("User-Agent", "x");
  EXPECT_TRUE(get.check().has_value());
}

TEST(Checker, AnyChangeOfTheSignedPartsIsFound) {
  const auto spoiled = [](auto&& spoil) {
    SignedGet get;
    spoil(get);
    return failure_of(get.check());
  };
  EXPECT_EQ(spoiled([](SignedGet& g) { g.method = "PUT"; }), CheckFailure::kBadSignature);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.path += "x"; }), CheckFailure::kBadSignature);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.query += "&a"; }), CheckFailure::kBadSignature);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.header("Range") = "bytes=0-8"; }),
            CheckFailure::kBadSignature);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.header("Host") = "other"; }), CheckFailure::kBadSignature);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.header("X-Amz-Date") = "20130524T000001Z"; }),
            CheckFailure::kBadSignature);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.header("X-Amz-Content-Sha256") = kUnsignedPayload; }),
            CheckFailure::kBadSignature);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.headers.erase(g.headers.begin() + 1); }),
            CheckFailure::kBadSignature);
  EXPECT_EQ(spoiled([](SignedGet& g) {
              std::string& text = g.header("Authorization");
              text.back() = text.back() == '0' ? '1' : '0';
            }),
            CheckFailure::kBadSignature);
}

TEST(Checker, NamesEachReason) {
  const auto spoiled = [](auto&& spoil) {
    SignedGet get;
    spoil(get);
    return failure_of(get.check());
  };
  EXPECT_EQ(spoiled([](SignedGet& g) { g.headers.resize(4); }), CheckFailure::kMissing);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.header("Authorization") = "AWS a:b"; }),
            CheckFailure::kMalformed);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.header("X-Amz-Date") = "yesterday"; }),
            CheckFailure::kMalformed);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.header("X-Amz-Content-Sha256") = "abc"; }),
            CheckFailure::kMalformed);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.path = "/bucket/a%2"; }), CheckFailure::kMalformed);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.headers.emplace_back("X-Amz-Meta-A", "b"); }),
            CheckFailure::kUnsignedHeader);
  EXPECT_EQ(spoiled([](SignedGet& g) { g.header("X-Amz-Date") = "20130525T000000Z"; }),
            CheckFailure::kWrongScope);
  EXPECT_EQ(failure_of(SignedGet().check(kExample, kExampleTime, "eu-west-1")),
            CheckFailure::kWrongScope);
  Credentials other = kExample;
  other.access_key_id = "SOMEONEELSE";
  EXPECT_EQ(failure_of(SignedGet().check(other)), CheckFailure::kUnknownKey);
  other = kExample;
  other.secret_access_key = Secret("wrong");
  EXPECT_EQ(failure_of(SignedGet().check(other)), CheckFailure::kBadSignature);
}

TEST(Checker, ClocksMayDifferByFifteenMinutesEitherWay) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  EXPECT_TRUE(SignedGet().check(kExample, kExampleTime + minutes(15)).has_value());
  EXPECT_TRUE(SignedGet().check(kExample, kExampleTime - minutes(15)).has_value());
  const auto late = SignedGet().check(kExample, kExampleTime + minutes(15) + seconds(1));
  ASSERT_EQ(failure_of(late), CheckFailure::kClockSkew);
  EXPECT_NE(late.error().message.find("2013-05-24T00:00:00"), std::string::npos);
  EXPECT_NE(late.error().message.find("2013-05-24T00:15:01"), std::string::npos);
  EXPECT_EQ(failure_of(SignedGet().check(kExample, kExampleTime - minutes(16))),
            CheckFailure::kClockSkew);
}

TEST(Checker, SessionTokenMustBeSignedAndRight) {
  Credentials temporary = kExample;
  temporary.session_token = Secret("token-1");
  temporary.expires_at = kExampleTime + std::chrono::hours(1);
  EXPECT_TRUE(SignedGet(temporary).check(temporary).has_value());
  EXPECT_EQ(failure_of(SignedGet(kExample).check(temporary)), CheckFailure::kBadToken);
  EXPECT_EQ(failure_of(SignedGet(temporary).check(kExample)), CheckFailure::kBadToken);
  temporary.expires_at = kExampleTime;
  EXPECT_EQ(failure_of(SignedGet(temporary).check(temporary)), CheckFailure::kExpiredToken);
}

TEST(Signer, KeyFollowsDaySecretAndIsOtherwiseKept) {
  Signer signer("us-east-1");
  const std::vector<HeaderView> headers{{"Host", "h"}};
  const RequestView request{
      .method = "GET", .path = "/", .query = {}, .headers = headers, .payload_hash = kEmptyPayload};
  const auto fresh = [&](const Credentials& c, WallTime t) {
    return Signer("us-east-1").sign(request, c, t).authorization;
  };
  Credentials other = kExample;
  other.secret_access_key = Secret("another");
  const WallTime tomorrow = kExampleTime + std::chrono::hours(24);
  EXPECT_EQ(signer.sign(request, kExample, kExampleTime).authorization,
            fresh(kExample, kExampleTime));
  EXPECT_EQ(signer.sign(request, other, kExampleTime).authorization, fresh(other, kExampleTime));
  EXPECT_EQ(signer.sign(request, other, tomorrow).authorization, fresh(other, tomorrow));
  EXPECT_NE(fresh(kExample, kExampleTime), fresh(other, kExampleTime));
}

TEST(ParseAuthorization, RefusesWhatIsMalformed) {
  const std::string good =
      "AWS4-HMAC-SHA256 Credential=AK/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range, "
      "Signature=" +
      std::string(64, 'a');
  ASSERT_TRUE(parse_authorization(good).has_value());
  EXPECT_EQ(signature_in(good), std::string(64, 'a'));
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_FALSE(parse_authorization(""));
  EXPECT_FALSE(parse_authorization("AWS4-HMAC-SHA256"));
  EXPECT_FALSE(parse_authorization(with("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1")));
  EXPECT_FALSE(parse_authorization(with("aws4_request", "aws4")));
  EXPECT_FALSE(parse_authorization(with("/s3/", "/")));
  EXPECT_FALSE(parse_authorization(with("host;range", "range;host")));
  EXPECT_FALSE(parse_authorization(with("host;range", "host;host")));
  EXPECT_FALSE(parse_authorization(with("host;range", "Host;range")));
  EXPECT_FALSE(parse_authorization(with("aaaa", "aaa")));
  EXPECT_FALSE(parse_authorization(good + ", Signature=" + std::string(64, 'b')));
  EXPECT_FALSE(parse_authorization(good + ", Extra=1"));
}

}  // namespace
}  // namespace objectcache::s3
