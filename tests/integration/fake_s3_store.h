#pragma once

#include <memory>
#include <string>
#include <utility>

#include "fake_s3/fake_s3.h"
#include "integration/s3_test_store.h"
#include "store/testing/conformance_harness.h"

namespace objectcache::integration {

/// A strict fake server that misbehaves on demand, and a client of it.
class FakeServerAndStore final : public store::StoreUnderTest {
 public:
  /// `parameters` are added to the URL: "&retries=0".
  explicit FakeServerAndStore(fake_s3::FakeS3Options options = {}, std::string parameters = {})
      : server_(start(options)) {
    std::string url = "s3://test-bucket/some/prefix?endpoint=" + server_->endpoint() + parameters;
    if (options.tls) url += "&ca=" + options.tls->ca_certificate.string();
    client_ = std::make_unique<S3TestStore>(url, environment_of(options));
  }
  [[nodiscard]] static store_s3::S3Environment environment_of(
      const fake_s3::FakeS3Options& options) {
    return environment_with(options.credentials[0].access_key_id,
                            options.credentials[0].secret_access_key.reveal());
  }
  /// A test cannot go on without: an error ends the program.
  [[nodiscard]] static std::unique_ptr<fake_s3::FakeS3> start(
      const fake_s3::FakeS3Options& options) {
    auto server = fake_s3::FakeS3::start(options);
    if (!server) {
      ADD_FAILURE() << server.error().to_string();
      std::abort();
    }
    return std::move(*server);
  }

  [[nodiscard]] fake_s3::FakeS3& server() { return *server_; }
  [[nodiscard]] S3TestStore& client() { return *client_; }
  [[nodiscard]] store_s3::S3Stats stats() {
    return client_->s3().stats(client_->driver().loop().now());
  }
  void fault(fake_s3::Fault fault) { server_->faults().add(std::move(fault)); }

  [[nodiscard]] store::ObjectStore& store() override { return client_->store(); }
  [[nodiscard]] store::LoopDriver& driver() override { return client_->driver(); }
  [[nodiscard]] std::unique_ptr<store::LoopDriver> another_driver() override {
    return client_->another_driver();
  }
  [[nodiscard]] store::ObjectStore* another_client() override { return client_->another_client(); }

 private:
  std::unique_ptr<fake_s3::FakeS3> server_;
  std::unique_ptr<S3TestStore> client_;
};

}  // namespace objectcache::integration
