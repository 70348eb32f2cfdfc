#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system_wall_clock.h"
#include "base/url.h"
#include "http/reactor.h"
#include "integration/servers.h"
#include "store/conformance.h"
#include "store/s3/s3_url.h"

namespace objectcache::integration {

/// The keys that tests use, as the environment of a program.
inline store_s3::S3Environment environment_with(const std::string& key, const std::string& secret) {
  store_s3::S3Environment out;
  out.access_key_id = key;
  out.secret_access_key = s3::Secret(secret);
  out.instance_metadata = false;
  return out;
}

/// An S3 store on reactors of its own, for tests.
class S3TestStore : public store::StoreUnderTest {
 public:
  /// `url` as docs/url.md says. A test cannot go on without: an error ends the program.
  S3TestStore(std::string url, store_s3::S3Environment environment)
      : url_(std::move(url)), environment_(std::move(environment)) {
    driver_ = another_driver();
    store_ = open();
  }
  /// So that traits() is true from the start.
  void learn() {
    bool done = false;
    driver_->run([&] {
      store_->probe(driver_->loop(), driver_->loop().now() + std::chrono::seconds(30),
                    [&](const auto& found) {
                      EXPECT_TRUE(found) << found.error().to_string();
                      done = true;
                    });
    });
    EXPECT_TRUE(driver_->until([&] { return done; }, std::chrono::seconds(31)));
  }

  [[nodiscard]] store::ObjectStore& store() override { return *store_; }
  [[nodiscard]] store_s3::S3Store& s3() { return *store_; }
  [[nodiscard]] store::LoopDriver& driver() override { return *driver_; }
  [[nodiscard]] std::unique_ptr<store::LoopDriver> another_driver() override {
    auto reactor = http::Reactor::start();
    if (!reactor) std::abort();
    reactors_.push_back(std::move(*reactor));
    return std::make_unique<store::ForeignLoopDriver>(*reactors_.back(), nullptr);
  }
  [[nodiscard]] store::ObjectStore* another_client() override {
    if (!other_) other_ = open();
    return other_.get();
  }
  [[nodiscard]] std::string key_prefix() override { return prefix_; }

 private:
  std::unique_ptr<store_s3::S3Store> open() {
    const auto url = parse_url(url_);
    if (!url) {
      ADD_FAILURE() << url.error().to_string();
      std::abort();
    }
    auto store = store_s3::open_s3(*url, environment_, std::make_shared<SystemWallClock>());
    if (!store) {
      ADD_FAILURE() << store.error().to_string();
      std::abort();
    }
    return std::move(*store);
  }

  const std::string url_;
  const store_s3::S3Environment environment_;
  const std::string prefix_ =
      "t" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + "/";
  // In this order: the stores go first, then the loops that they used.
  std::vector<std::unique_ptr<http::Reactor>> reactors_;
  std::unique_ptr<store::LoopDriver> driver_;
  std::unique_ptr<store_s3::S3Store> store_;
  std::unique_ptr<store_s3::S3Store> other_;
};

}  // namespace objectcache::integration
