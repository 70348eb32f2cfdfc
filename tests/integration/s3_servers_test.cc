// Where real S3 servers differ, and that the store gets along with each. What they do was first
// observed, then written down here: a server that changes its mind fails a test.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "integration/s3_test_store.h"
#include "integration/servers.h"
#include "store/testing/conformance_harness.h"

namespace objectcache::integration {
namespace {

using store::GetOutcome;
using store::conformance::Bytes;
using store::conformance::GetOptions;
using store::conformance::make_bytes;
using store_s3::PutCondition;

class S3Servers : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    store_ = std::make_unique<S3TestStore>(with_prefix(server().url, "servers"),
                                           environment_with(access_key(), secret_key()));
    h_.emplace(*store_, options_);
  }
  [[nodiscard]] std::string product() const {
    return server().name.substr(0, server().name.find('_'));
  }
  /// The server's URL with another bucket.
  [[nodiscard]] std::string url_of_bucket(const std::string& bucket) const {
    const std::string& url = server().url;
    const std::size_t slash = url.find_first_of("/?", std::string("s3://").size());
    return "s3://" + bucket + url.substr(slash);
  }
  /// A read of ten bytes by another client, which must fail.
  [[nodiscard]] Error refusal(const std::string& url, store_s3::S3Environment environment) const {
    S3TestStore other(url, std::move(environment));
    store::conformance::Harness h(other, options_);
    const auto get = h.finish(h.start_get("k", {.length = 10})->call);
    EXPECT_FALSE(get);
    return get ? Error{} : get.error();
  }

  const store::ConformanceOptions options_;
  std::unique_ptr<S3TestStore> store_;
  std::optional<store::conformance::Harness> h_;
};

TEST_P(S3Servers, ConditionalPutIsTriedOutNotBelieved) {
  std::optional<Result<PutCondition::State>> found;
  h_->driver().run([&] {
    store_->s3().probe(h_->loop(), h_->deadline(), [&](auto state) { found = std::move(state); });
  });
  ASSERT_TRUE(h_->driver().until([&] { return found.has_value(); }, std::chrono::seconds(60)));
  ASSERT_TRUE(*found) << found->error().to_string();
  const bool honours = product() != "rclone";
  EXPECT_EQ(**found, honours ? PutCondition::State::kHonoured : PutCondition::State::kIgnored);
  EXPECT_EQ(store_->store().traits().put_if_absent_is_atomic, honours);
  // Nothing of the probe is left behind.
  const auto page = h_->list({.prefix = ".objectcache-probe"});
  ASSERT_TRUE(page) << page.error().to_string();
  EXPECT_TRUE(page->entries.empty());
  // Either way the second writer finds what the first has put.
  h_->create("once", make_bytes(100, 1));
  const auto second = h_->put("once", make_bytes(100, 2));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->outcome, store::PutOutcome::kAlreadyExists);
  h_->expect_get("once", make_bytes(100, 1));
}

TEST_P(S3Servers, RangesAndVersions) {
  const Bytes bytes = make_bytes(5 << 20, 3);
  h_->create("k", bytes);
  const auto head = h_->head("k");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->size_bytes, bytes.size());
  for (const std::uint64_t offset : {0UL, 1UL, 4096UL, (5UL << 20) - 70'000}) {
    const Bytes part(bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                     bytes.begin() + static_cast<std::ptrdiff_t>(offset + 70'000));
    h_->expect_get("k", part, {.offset = offset});
    h_->expect_get("k", part, {.offset = offset, .version = head->version});
  }
  h_->expect_get_outcome("k", GetOutcome::kOutOfRange, {.offset = bytes.size() - 5, .length = 6});
  h_->expect_get_outcome("k", GetOutcome::kOutOfRange, {.offset = bytes.size(), .length = 1});
  h_->expect_get_outcome(
      "k", GetOutcome::kVersionChanged,
      {.length = 10, .version = store::ObjectVersion{"\"0123456789abcdef0123456789abcdef\""}});
  // Replaced by other bytes, it is another version.
  ASSERT_TRUE(h_->put("k", make_bytes(5 << 20, 4), store::PutMode::kReplace));
  h_->expect_get_outcome("k", GetOutcome::kVersionChanged,
                         {.length = 10, .version = head->version});
}

/// "<tenant>/<namespace>/<2 hex>/<chunk key>/<shard>": what folders do to order does not touch
/// them.
TEST_P(S3Servers, NamesAsTheProductMakesThemListInByteOrder) {
  std::vector<std::string> names;
  Random random(5);
  const auto hex = [&](std::size_t digits) {
    std::string out;
    while (out.size() < digits) out += "0123456789abcdef"[random.below(16)];
    return out;
  };
  for (const char* const tenant : {"a", "a-b", "default"}) {
    const std::string space = hex(32);
    names.push_back(std::string(tenant) + "/" + space + "/namespace.json");
    for (int i = 0; i < 5; ++i) {
      const std::string key = hex(64);
      for (const char* const shard : {"tp0of2-pp0of1", "tp1of2-pp0of1"}) {
        names.push_back(std::string(tenant) + "/" + space + "/" + key.substr(0, 2) + "/" + key +
                        "/" + shard);
      }
    }
  }
  for (const std::string& name : names) h_->create(name, make_bytes(name.size(), 1));
  std::ranges::sort(names);
  std::vector<std::string> got;
  for (const std::uint32_t entries_max : {1U, 4U, 1000U}) {
    got.clear();
    for (const char* const tenant : {"a-b/", "a/", "default/"}) {
      store::ListRequest request{.prefix = h_->prefix() + tenant, .entries_max = entries_max};
      for (int pages = 0; pages < 100; ++pages) {
        const auto page = h_->list(request);
        ASSERT_TRUE(page) << page.error().to_string();
        for (const auto& entry : page->entries) {
          got.push_back(entry.key.text.substr(h_->prefix().size()));
        }
        if (page->next_start_after.empty()) break;
        request.start_after = page->next_start_after;
      }
    }
    EXPECT_EQ(got, names) << entries_max;
  }
  const auto tenants = h_->list({.prefix = h_->prefix(), .delimiter = '/'});
  ASSERT_TRUE(tenants) << tenants.error().to_string();
  EXPECT_EQ(tenants->common_prefixes,
            (std::vector<std::string>{h_->prefix() + "a-b/", h_->prefix() + "a/",
                                      h_->prefix() + "default/"}));
}

TEST_P(S3Servers, WrongKeysAreRefusedWithTheCause) {
  const Error secret = refusal(server().url, environment_with(access_key(), "not-the-secret"));
  EXPECT_EQ(secret.code, ErrorCode::kPermissionDenied) << secret.to_string();
  EXPECT_EQ(secret.to_string().find("not-the-secret"), std::string::npos);
  const Error key = refusal(server().url, environment_with("NOSUCHKEY", "not-the-secret"));
  EXPECT_EQ(key.code, ErrorCode::kPermissionDenied) << key.to_string();
}

TEST_P(S3Servers, AnonymousRequestsAreRefused) {
  const Error error = refusal(server().url + "&anonymous=on", {});
  // rclone takes the missing signature for one of an unknown kind.
  EXPECT_EQ(error.code,
            product() == "rclone" ? ErrorCode::kInvalidArgument : ErrorCode::kPermissionDenied)
      << error.to_string();
}

TEST_P(S3Servers, AMissingBucketIsAnErrorAndNoMiss) {
  const std::string url = url_of_bucket("objectcache-no-such-bucket");
  const auto environment = environment_with(access_key(), secret_key());
  const Error get = refusal(url, environment);
  EXPECT_EQ(get.code, ErrorCode::kNotFound) << get.to_string();
  S3TestStore other(url, environment);
  store::conformance::Harness h(other, options_);
  const auto head = h.finish(h.start_head("k"));
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().code, ErrorCode::kNotFound) << head.error().to_string();
  const auto list = h.list({});
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kNotFound) << list.error().to_string();
}

TEST_P(S3Servers, ACertificateOfAnotherAuthorityIsRefused) {
  const std::string& url = server().url;
  const std::size_t ca = url.find("&ca=");
  if (ca == std::string::npos) return;  // Plain http.
  const std::size_t end = std::min(url.find('&', ca + 1), url.size());
  const auto environment = environment_with(access_key(), secret_key());
  const Error other = refusal(
      url.substr(0, ca) + "&ca=" + cert_file("other-ca.pem") + url.substr(end), environment);
  EXPECT_NE(other.message.find("certificate"), std::string::npos) << other.to_string();
  EXPECT_EQ(other.code, ErrorCode::kInvalidArgument) << other.to_string();
  const Error missing =
      refusal(url.substr(0, ca) + "&ca=/no/such/file.pem" + url.substr(end), environment);
  EXPECT_EQ(missing.code, ErrorCode::kInvalidArgument) << missing.to_string();
}

TEST_P(S3Servers, ConnectionsAreKept) {
  const Bytes bytes = make_bytes(10'000, 1);
  h_->create("k", bytes);
  for (int i = 0; i < 20; ++i) h_->expect_get("k", bytes);
  const auto stats = store_->s3().stats(h_->loop().now());
  EXPECT_EQ(stats.retries, 0U);
  EXPECT_EQ(stats.in_flight, 0U);
}

INSTANTIATE_TEST_SUITE_P(Servers, S3Servers, every_server(), server_name);

}  // namespace
}  // namespace objectcache::integration
