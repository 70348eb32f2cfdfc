#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

/// The real S3 servers that integration tests run on: started by tools/with-servers, found in
/// OC_TEST_*.
///
/// A suite that runs on each of them:
///
///     class Listing : public integration::ServerTest {};
///     TEST_P(Listing, PagesByStartAfter) { open(server().url); ... }
///     INSTANTIATE_TEST_SUITE_P(Servers, Listing, integration::every_server(),
///     integration::server_name);
///
/// A server that was not started skips its tests on a developer's machine and fails them where CI
/// is set. The names ("Servers/Listing.PagesByStartAfter/rgw") are what the summary of ./dev test
/// counts by.
namespace objectcache::integration {

struct Server {
  std::string name;     ///< rgw, rgw_tls, seaweedfs, seaweedfs_tls, rclone, rclone_tls.
  std::string url;      ///< s3://bucket/prefix?endpoint=...: all but the keys, which are in AWS_*.
  std::string version;  ///< "Ceph RGW 16.2.15".
};

/// Empty: not started in this run.
std::optional<Server> find_server(const std::string& name);

/// Names of all that with-servers can start; for INSTANTIATE_TEST_SUITE_P.
std::vector<std::string> all_server_names();

/// The AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY that all of them accept.
std::string access_key();
std::string secret_key();

/// Path of one of the files in OC_TEST_CERTS: ca.pem, other-ca.pem, expired.pem, wrong-name.pem,
/// server.pem, server.key. Empty when no server was started.
std::string cert_file(const std::string& name);

/// `url` with "/suffix" added to its prefix, so that tests on one server do not meet.
std::string with_prefix(const std::string& url, const std::string& suffix);

/// Skips, or with CI set fails; use inside SetUp() or a test, followed by `return`.
void report_missing(const std::string& name);

inline auto every_server() { return ::testing::ValuesIn(all_server_names()); }
inline std::string server_name(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

class ServerTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    server_ = find_server(GetParam());
    if (!server_) report_missing(GetParam());
  }
  [[nodiscard]] const Server& server() const { return *server_; }

 private:
  std::optional<Server> server_;
};

}  // namespace objectcache::integration
