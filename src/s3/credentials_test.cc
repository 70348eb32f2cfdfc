#include "s3/credentials.h"

#include <gtest/gtest.h>

#include "s3/metadata.h"
#include "s3/profiles.h"

namespace objectcache::s3 {
namespace {

const WallTime kNow = *parse_amz_date("20260102T030405Z");

Credentials temporary(WallTime end) {
  return {.access_key_id = "ASIA",
          .secret_access_key = Secret("hush"),
          .session_token = Secret("token"),
          .expires_at = end};
}

TEST(Secret, IsNotPrinted) {
  EXPECT_EQ(testing::PrintToString(Secret("hunter2")), "<secret>");
  EXPECT_EQ(testing::PrintToString(Secret()), "<no secret>");
}

TEST(StaticCredentials, RefusesExpiredOnes) {
  const StaticCredentials provider(temporary(kNow));
  EXPECT_TRUE(provider.current(kNow - std::chrono::seconds(1)).has_value());
  const auto late = provider.current(kNow);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(late.error().to_string().find("hush"), std::string::npos);
  EXPECT_FALSE(provider.needs_refresh(kNow));
}

TEST(RefreshedCredentials, FollowsItsSource) {
  RefreshedCredentials provider({.source = "instance metadata"});
  EXPECT_TRUE(provider.needs_refresh(kNow));
  EXPECT_FALSE(provider.current(kNow).has_value());
  provider.note_failure(fail(ErrorCode::kUnavailable, "no route").error());
  EXPECT_EQ(provider.current(kNow).error().code, ErrorCode::kUnavailable);

  provider.replace(temporary(kNow + std::chrono::hours(1)));
  EXPECT_FALSE(provider.needs_refresh(kNow));
  ASSERT_TRUE(provider.current(kNow).has_value());
  EXPECT_EQ((*provider.current(kNow))->access_key_id, "ASIA");
  EXPECT_TRUE(provider.needs_refresh(kNow + std::chrono::minutes(56)));
  // A failed refresh does not take away what still works.
  provider.note_failure(fail(ErrorCode::kUnavailable, "no route").error());
  EXPECT_TRUE(provider.current(kNow + std::chrono::minutes(59)).has_value());
  EXPECT_EQ(provider.current(kNow + std::chrono::hours(1)).error().code, ErrorCode::kUnavailable);
}

TEST(CredentialsProblem, NamesIt) {
  Credentials c = temporary(kNow);
  EXPECT_EQ(credentials_problem(c), std::nullopt);
  c.secret_access_key = Secret("hush\n");
  ASSERT_TRUE(credentials_problem(c).has_value());
  EXPECT_EQ(credentials_problem(c)->find("hush"), std::string::npos);
  c = temporary(kNow);
  c.access_key_id = "a/b";
  EXPECT_TRUE(credentials_problem(c).has_value());
  c.access_key_id = "";
  EXPECT_TRUE(credentials_problem(c).has_value());
}

// ---------------------------------------------------------------- shared files

constexpr std::string_view kCredentialsFile = R"(# a comment
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key = abc/def+ghi=
; another comment

[ work ]   # trailing comment
  aws_access_key_id=AKWORK
aws_secret_access_key	=	s3cret#not-a-comment  # but this is
aws_session_token = tok==
)";
constexpr std::string_view kConfigFile = R"([default]
region = eu-central-1
[profile work]
region=us-west-2
endpoint_url = http://store:7480
ca_bundle = /etc/ca.pem
s3 =
    addressing_style = path
    max_concurrent_requests = 20
output = json
[work]
region = ignored-because-it-lacks-the-word-profile
[profile config-only]
aws_access_key_id = AKCONFIG
aws_secret_access_key = conf
[services x]
s3 =
  endpoint_url = http://elsewhere
)";

TEST(ReadProfile, JoinsBothFiles) {
  const auto normal = read_profile(kCredentialsFile, kConfigFile, "default");
  ASSERT_TRUE(normal.has_value()) << normal.error().to_string();
  ASSERT_TRUE(normal->credentials.has_value());
  EXPECT_EQ(normal->credentials->access_key_id, "AKDEFAULT");
  EXPECT_EQ(normal->credentials->secret_access_key.reveal(), "abc/def+ghi=");
  EXPECT_TRUE(normal->credentials->session_token.empty());
  EXPECT_EQ(normal->region, "eu-central-1");
  EXPECT_EQ(normal->endpoint_url, std::nullopt);

  const auto work = read_profile(kCredentialsFile, kConfigFile, "work");
  ASSERT_TRUE(work.has_value()) << work.error().to_string();
  EXPECT_EQ(work->credentials->access_key_id, "AKWORK");
  EXPECT_EQ(work->credentials->secret_access_key.reveal(), "s3cret#not-a-comment");
  EXPECT_EQ(work->credentials->session_token.reveal(), "tok==");
  EXPECT_EQ(work->region, "us-west-2");
  EXPECT_EQ(work->endpoint_url, "http://store:7480");
  EXPECT_EQ(work->addressing_style, "path");
  EXPECT_EQ(work->ca_bundle, "/etc/ca.pem");

  const auto config_only = read_profile(kCredentialsFile, kConfigFile, "config-only");
  ASSERT_TRUE(config_only.has_value());
  EXPECT_EQ(config_only->credentials->access_key_id, "AKCONFIG");
  const auto region_only = read_profile("", kConfigFile, "default");
  ASSERT_TRUE(region_only.has_value());
  EXPECT_FALSE(region_only->credentials.has_value());
}

TEST(ReadProfile, WindowsLineEndsAndNoLineEnd) {
  const auto p = read_profile("[a]\r\naws_access_key_id = x\r\naws_secret_access_key = y", "", "a");
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->credentials->secret_access_key.reveal(), "y");
}

TEST(ReadProfile, ErrorsNameTheLineButNeverShowIt) {
  const auto unknown = read_profile(kCredentialsFile, kConfigFile, "nobody");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(unknown.error().key, "nobody");
  for (const char* text :
       {"[a]\nhunter2", "hunter2 = x\n[a]", "[a\nhunter2=1", "[a] hunter2\n", "[a]\n= hunter2"}) {
    const auto bad = read_profile(text, "", "a");
    ASSERT_FALSE(bad.has_value()) << text;
    EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(bad.error().message.find("line "), std::string::npos);
    EXPECT_EQ(bad.error().to_string().find("hunter2"), std::string::npos);
  }
  EXPECT_FALSE(read_profile(std::string((1 << 20) + 1, '\n'), "", "a").has_value());
}

// ---------------------------------------------------------------- metadata services

TEST(InstanceMetadata, RequestsFollowTheProtocol) {
  EXPECT_EQ(instance_token_request().method, "PUT");
  EXPECT_EQ(instance_token_request().target, "/latest/api/token");
  const auto token = parse_instance_token("AQAAA==\n");
  ASSERT_TRUE(token.has_value());
  const auto role = parse_instance_role("my-role\nsecond");
  ASSERT_TRUE(role.has_value());
  EXPECT_EQ(*role, "my-role");
  const auto request = instance_credentials_request(*token, *role);
  EXPECT_EQ(request.target, "/latest/meta-data/iam/security-credentials/my-role");
  ASSERT_EQ(request.headers.size(), 1U);
  EXPECT_EQ(request.headers[0].second, "AQAAA==");
  EXPECT_EQ(parse_instance_role("").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(parse_instance_token("").has_value());
  EXPECT_FALSE(parse_instance_token("a\r\nInjected: b").has_value());
}

TEST(ContainerMetadata, ChoosesTheEndpoint) {
  const auto ecs =
      container_request({.relative_uri = "/v2/credentials/x", .full_uri = {}, .token = {}});
  ASSERT_TRUE(ecs.has_value());
  EXPECT_EQ(ecs->endpoint.url(), "http://169.254.170.2");
  EXPECT_EQ(ecs->request.target, "/v2/credentials/x");
  const auto eks = container_request({.relative_uri = {},
                                      .full_uri = "http://169.254.170.23/v1/credentials?a=1",
                                      .token = Secret("jwt\n")});
  ASSERT_TRUE(eks.has_value()) << eks.error().to_string();
  EXPECT_EQ(eks->request.target, "/v1/credentials?a=1");
  ASSERT_EQ(eks->request.headers.size(), 2U);
  EXPECT_EQ(eks->request.headers[1].second, "jwt");
  EXPECT_TRUE(
      container_request({.relative_uri = {}, .full_uri = "https://any.where/x", .token = {}}));
  EXPECT_TRUE(
      container_request({.relative_uri = {}, .full_uri = "http://127.0.0.1:80/x", .token = {}}));
  EXPECT_EQ(container_request({.relative_uri = {}, .full_uri = "http://evil/x", .token = {}})
                .error()
                .code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(container_request({.relative_uri = {}, .full_uri = "http://127.evil.com/", .token = {}})
                .error()
                .code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(container_request({}).error().code, ErrorCode::kNotFound);
}

TEST(MetadataCredentials, ReadsBothServices) {
  const auto c = parse_metadata_credentials(
      R"({"Code":"Success","Type":"AWS-HMAC","AccessKeyId":"ASIA","SecretAccessKey":"s",
          "Token":"t","Expiration":"2026-01-02T09:04:05Z","LastUpdated":"x"})");
  ASSERT_TRUE(c.has_value()) << c.error().to_string();
  EXPECT_EQ(c->access_key_id, "ASIA");
  EXPECT_EQ(c->session_token.reveal(), "t");
  EXPECT_EQ(c->expires_at, kNow + std::chrono::hours(6));
}

TEST(MetadataCredentials, RefusesTheRestWithoutShowingIt) {
  for (const char* body :
       {"", "[]", "hush", R"({"Code":"Failed","Message":"no role"})",
        R"({"AccessKeyId":"A","SecretAccessKey":7})", R"({"AccessKeyId":"A"})",
        R"({"AccessKeyId":"A","SecretAccessKey":"hush","Expiration":"tomorrow"})",
        R"({"AccessKeyId":"A","SecretAccessKey":"hush\n"})"}) {
    const auto c = parse_metadata_credentials(body);
    ASSERT_FALSE(c.has_value()) << body;
    EXPECT_EQ(c.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(c.error().to_string().find("hush"), std::string::npos);
  }
  EXPECT_NE(parse_metadata_credentials(R"({"Code":"Failed","Message":"no role"})")
                .error()
                .message.find("no role"),
            std::string::npos);
  EXPECT_FALSE(parse_metadata_credentials(std::string(60'000, '[')).has_value());
}

}  // namespace
}  // namespace objectcache::s3
