#include "store/s3/s3_url.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "objectcache/cache.h"
#include "store/s3/testing/fake_s3_world.h"

namespace objectcache::store_s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Result<S3Settings> read(const std::string& url, const S3Environment& environment = {}) {
  const auto parsed = parse_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  return read_s3_url(*parsed, environment);
}
S3Options options(const std::string& url, const S3Environment& environment = {}) {
  const auto settings = read(url, environment);
  EXPECT_TRUE(settings) << settings.error().to_string();
  return settings ? settings->options : S3Options{};
}

TEST(S3Url, BucketAndPrefix) {
  struct Row {
    std::string url;
    std::string prefix;
  };
  for (const Row& row : {Row{"s3://bkt", ""}, Row{"s3://bkt/", ""}, Row{"s3://bkt/a", "a"},
                         Row{"s3://bkt/a/b/", "a/b"}, Row{"s3://bkt//a//", "a"}}) {
    const S3Options got = options(row.url);
    EXPECT_EQ(got.bucket, "bkt");
    EXPECT_EQ(got.prefix, row.prefix) << row.url;
  }
  EXPECT_FALSE(read("s3:"));
  EXPECT_FALSE(read("s3:///a"));
}

TEST(S3Url, EveryParameterArrives) {
  const S3Options got = options(
      "s3://bkt/p?endpoint=https://store:9000/base,http://[::1]:80&region=eu-west-7&"
      "path_style=false&ca=/etc/ca.pem&sign_payload=always&connections=7&connect_timeout=1s&"
      "stall_timeout=2s&request_timeout=3s&retries=9&retry_delay_max=250ms&hedge=off&"
      "requests_per_second=50&receive_buffer=64KiB&link_rate=8gbit&access_key_id=A&"
      "secret_access_key=S");
  ASSERT_EQ(got.endpoints.size(), 2U);
  EXPECT_EQ(got.endpoints[0].url(), "https://store:9000/base");
  EXPECT_EQ(got.endpoints[1].host, "::1");
  EXPECT_EQ(got.region, "eu-west-7");
  EXPECT_TRUE(got.region_is_explicit);
  EXPECT_EQ(got.style, s3::AddressingStyle::kVirtualHost);
  EXPECT_EQ(got.ca_file, "/etc/ca.pem");
  EXPECT_EQ(got.sign_payload, SignPayload::kAlways);
  EXPECT_EQ(got.connections, 7U);
  EXPECT_EQ(got.connect_timeout, seconds(1));
  EXPECT_EQ(got.stall_timeout, seconds(2));
  EXPECT_EQ(got.request_timeout, seconds(3));
  EXPECT_EQ(got.retry.attempts_max, 10U);
  EXPECT_EQ(got.retry.backoff_max, milliseconds(250));
  EXPECT_FALSE(got.hedge.enabled);
  EXPECT_EQ(got.rate.requests_per_second_max, 50);
  EXPECT_EQ(got.receive_buffer_bytes, 65536U);
  EXPECT_EQ(got.link_bytes_per_second, 1e9);
}

TEST(S3Url, RefusesByNameAndShowsNoSecret) {
  struct Row {
    std::string parameters;
    std::string part;
  };
  const Row rows[] = {
      {"regoin=x", "region"},
      {"endpoint=ftp://x", "endpoint"},
      {"endpoint=http://a,http://a", "twice"},
      {"endpoint=http://a,", "empty"},
      {"path_style=maybe", "path_style"},
      {"connections=0", "connections"},
      {"connections=many", "connections"},
      {"retries=-1", "retries"},
      {"stall_timeout=0", "stall_timeout"},
      {"connect_timeout=5", "connect_timeout"},
      {"hedge=perhaps", "hedge"},
      {"link_rate=fast", "link_rate"},
      {"receive_buffer=2GiB", "receive_buffer"},
      {"access_key_id=AK", "secret_access_key"},
      {"secret_access_key=topsecret", "access_key_id"},
      {"session_token=topsecret", "session_token"},
      {"access_key_id=AK&secret_access_key=top%20secret", "secret"},
      {"profile=nobody", "nobody"},
      {"insecure_tls=on", "insecure_tls"},
  };
  for (const Row& row : rows) {
    const auto got = read("s3://bkt/p?" + row.parameters);
    ASSERT_FALSE(got) << row.parameters;
    const std::string text = got.error().to_string();
    EXPECT_EQ(got.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(text.find(row.part), std::string::npos) << row.parameters << ": " << text;
    EXPECT_EQ(text.find("topsecret"), std::string::npos) << text;
    EXPECT_EQ(text.find("top secret"), std::string::npos) << text;
  }
}

TEST(S3Url, AwsIsTheDefaultEndpointAndUsesVirtualHosts) {
  S3Options got = options("s3://bkt?region=eu-west-7");
  EXPECT_EQ(got.endpoints[0].url(), "https://s3.eu-west-7.amazonaws.com");
  EXPECT_EQ(got.style, s3::AddressingStyle::kVirtualHost);
  EXPECT_EQ(options("s3://b.k.t?region=eu-west-7").style, s3::AddressingStyle::kPath);
  EXPECT_EQ(options("s3://bkt?endpoint=http://127.0.0.1:9000").style, s3::AddressingStyle::kPath);
  EXPECT_EQ(options("s3://bkt?path_style=true").style, s3::AddressingStyle::kPath);
  EXPECT_FALSE(options("s3://bkt").region_is_explicit);
}

TEST(S3Url, WhoWinsAmongUrlEnvironmentAndProfile) {
  S3Environment environment;
  environment.credentials_file =
      "[default]\naws_access_key_id = D\naws_secret_access_key = d\n"
      "[other]\naws_access_key_id = O\naws_secret_access_key = o\naws_session_token = t\n"
      "[keyless]\n";
  environment.config_file =
      "[default]\nregion = r-default\n[profile other]\nregion = r-other\n"
      "endpoint_url = http://profile:1\n[profile keyless]\nregion = r\n";
  const auto key = [&](const std::string& parameters) {
    const auto got = read("s3://bkt?" + parameters, environment);
    EXPECT_TRUE(got) << got.error().to_string();
    if (!got) return std::string("error");
    return got->credentials ? got->credentials->access_key_id : std::string("none");
  };
  EXPECT_EQ(key("hedge=on"), "D");
  EXPECT_EQ(key("profile=other"), "O");
  EXPECT_EQ(options("s3://bkt", environment).region, "r-default");
  EXPECT_EQ(options("s3://bkt?profile=other", environment).region, "r-other");
  EXPECT_EQ(options("s3://bkt?profile=other", environment).endpoints[0].url(), "http://profile:1");
  EXPECT_FALSE(read("s3://bkt?profile=keyless", environment));
  environment.access_key_id = "E";
  environment.secret_access_key = s3::Secret("e");
  environment.region = "r-env";
  environment.endpoint_url = "http://env:1";
  EXPECT_EQ(key("hedge=on"), "E");
  EXPECT_EQ(key("profile=other"), "O");  // Who names a profile means it.
  EXPECT_EQ(key("access_key_id=U&secret_access_key=u"), "U");
  EXPECT_EQ(key("anonymous=on"), "none");
  EXPECT_EQ(options("s3://bkt", environment).region, "r-env");
  EXPECT_EQ(options("s3://bkt?region=r-url", environment).region, "r-url");
  EXPECT_EQ(options("s3://bkt?endpoint=http://url:1", environment).endpoints[0].host, "url");
  environment.profile = "nobody";
  EXPECT_FALSE(read("s3://bkt", environment));
  environment.credentials_file = "[broken\n";
  EXPECT_FALSE(read("s3://bkt", environment));
}

TEST(S3Environment, PicksVariablesAndReadsFiles) {
  const auto folder = std::filesystem::path(::testing::TempDir()) /
                      ("objectcache-env-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / ".aws");
  std::ofstream(folder / ".aws" / "credentials") << "[default]\naws_access_key_id = H\n";
  std::ofstream(folder / "token") << "the token\n";
  Environment environment;
  environment.home_directory = folder.string();
  environment.variables = {{"AWS_ACCESS_KEY_ID", "A"},
                           {"AWS_SECRET_ACCESS_KEY", "S"},
                           {"AWS_DEFAULT_REGION", "r"},
                           {"AWS_ENDPOINT_URL", "http://general"},
                           {"AWS_ENDPOINT_URL_S3", "http://s3"},
                           {"AWS_EC2_METADATA_DISABLED", "true"},
                           {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/c"},
                           {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", (folder / "token").string()}};
  const auto got = read_environment(environment);
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->access_key_id, "A");
  EXPECT_EQ(got->secret_access_key.reveal(), "S");
  EXPECT_EQ(got->region, "r");
  EXPECT_EQ(got->endpoint_url, "http://s3");
  EXPECT_FALSE(got->instance_metadata);
  EXPECT_EQ(got->credentials_file, "[default]\naws_access_key_id = H\n");
  EXPECT_EQ(got->config_file, "");
  EXPECT_EQ(got->container.token.reveal(), "the token");
  environment.variables["AWS_CONFIG_FILE"] = (folder / "missing").string();
  EXPECT_FALSE(read_environment(environment));
  std::filesystem::remove_all(folder);
}

// ---------------------------------------------------------------- where credentials come from

/// Answers metadata requests by their target.
class FakeMetadata final : public Connector, public http::Client {
 public:
  explicit FakeMetadata(FakeEventLoop& loop) : loop_(loop) {}
  Result<std::shared_ptr<http::Client>> connect(EventLoop&, const s3::Endpoint& endpoint,
                                                const Options&) override {
    endpoints.push_back(endpoint.url());
    return std::shared_ptr<http::Client>(std::shared_ptr<void>(), this);
  }
  std::shared_ptr<http::Exchange> send(http::Request request, http::ExchangeOptions,
                                       std::shared_ptr<http::ResponseSink> sink) override {
    requests.push_back(request.method + " " + request.target);
    const auto it = answers.find(requests.back());
    loop_.run_at(loop_.now() + milliseconds(3),
                 [found = it != answers.end(), body = it != answers.end() ? it->second : "", sink] {
                   http::ResponseHead head;
                   head.status = found ? 200 : 404;
                   static_cast<void>(sink->on_head(head));
                   sink->on_end(body);
                 });
    return nullptr;
  }
  std::vector<std::string> endpoints;
  std::vector<std::string> requests;
  std::map<std::string, std::string> answers;

 private:
  FakeEventLoop& loop_;
};

constexpr const char* kDocument =
    R"({"Code": "Success", "AccessKeyId": "AK", "SecretAccessKey": "SK", "Token": "T",)"
    R"( "Expiration": "2026-11-30T06:00:00Z"})";

class Metadata : public ::testing::Test {
 protected:
  std::shared_ptr<CredentialSource> source(const S3Settings& settings) {
    auto made = credential_source(settings, wall_, fake_);
    EXPECT_TRUE(made) << made.error().to_string();
    return made ? *made : nullptr;
  }
  Result<CredentialsPtr> get(CredentialSource& from) {
    std::optional<Result<CredentialsPtr>> out;
    from.get(loop_, [&](auto result) { out = std::move(result); });
    loop_.run_to_idle();
    return out ? *out : fail(ErrorCode::kInternal, "no completion");
  }

  FakeEventLoop loop_;
  std::shared_ptr<FakeWallClock> wall_ =
      std::make_shared<FakeWallClock>(std::chrono::sys_days(std::chrono::year(2026) / 11 / 30));
  std::shared_ptr<FakeMetadata> fake_ = std::make_shared<FakeMetadata>(loop_);
};

TEST_F(Metadata, OfAnInstance) {
  fake_->answers = {{"PUT /latest/api/token", "token"},
                    {"GET /latest/meta-data/iam/security-credentials/", "role"},
                    {"GET /latest/meta-data/iam/security-credentials/role", kDocument}};
  const auto from = source({});
  const auto got = get(*from);
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ((*got)->access_key_id, "AK");
  EXPECT_EQ((*got)->session_token.reveal(), "T");
  EXPECT_EQ(fake_->requests.size(), 3U);
  EXPECT_EQ(fake_->endpoints[0], "http://169.254.169.254");
  ASSERT_TRUE(get(*from));
  EXPECT_EQ(fake_->requests.size(), 3U);
}

TEST_F(Metadata, OfAContainer) {
  fake_->answers = {{"GET /creds", kDocument}};
  S3Settings settings;
  settings.container.relative_uri = "/creds";
  const auto got = get(*source(settings));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ((*got)->access_key_id, "AK");
  EXPECT_EQ(fake_->endpoints[0], "http://169.254.170.2");
  settings.container = {.relative_uri = {}, .full_uri = "http://example.com/creds", .token = {}};
  EXPECT_FALSE(credential_source(settings, wall_, fake_));
}

TEST_F(Metadata, FailuresSayWhatToDo) {
  const auto got = get(*source({}));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kPermissionDenied);
  EXPECT_NE(got.error().message.find("anonymous"), std::string::npos) << got.error().message;
  S3Settings settings;
  settings.instance_metadata = false;
  const auto none = credential_source(settings, wall_, fake_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kPermissionDenied);
}

TEST_F(Metadata, LeavingALoopEndsAFetch) {
  fake_->answers = {{"PUT /latest/api/token", "token"}};
  const auto from = source({});
  std::optional<Result<CredentialsPtr>> out;
  from->get(loop_, [&](auto result) { out = std::move(result); });
  from->leave(loop_);
  loop_.run_to_idle();
  ASSERT_TRUE(out);
  EXPECT_EQ(out->error().code, ErrorCode::kCancelled);
  EXPECT_EQ(fake_->requests.size(), 1U);
}

}  // namespace
}  // namespace objectcache::store_s3
