#include "integration/servers.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace objectcache::integration {
namespace {

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::string() : std::string(value);
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

}  // namespace

std::vector<std::string> all_server_names() {
  return {"rgw", "rgw_tls", "seaweedfs", "seaweedfs_tls", "rclone", "rclone_tls"};
}

std::optional<Server> find_server(const std::string& name) {
  const std::string url = environment("OC_TEST_S3_" + upper(name));
  if (url.empty()) return std::nullopt;
  const std::string product = name.substr(0, name.find('_'));
  return Server{
      .name = name, .url = url, .version = environment("OC_TEST_VERSION_" + upper(product))};
}

std::string access_key() { return environment("AWS_ACCESS_KEY_ID"); }
std::string secret_key() { return environment("AWS_SECRET_ACCESS_KEY"); }

std::string cert_file(const std::string& name) {
  const std::string folder = environment("OC_TEST_CERTS");
  return folder.empty() ? folder : folder + "/" + name;
}

std::string with_prefix(const std::string& url, const std::string& suffix) {
  const std::size_t query = std::min(url.find('?'), url.size());
  return url.substr(0, query) + "/" + suffix + url.substr(query);
}

void report_missing(const std::string& name) {
  const std::string why = "server " + name + " was not started: run under tools/with-servers";
  if (environment("CI").empty()) GTEST_SKIP() << why;
  FAIL() << why << "; where CI is set nothing may be left out";
}

}  // namespace objectcache::integration
