#include "store/s3/s3_environment.h"

#include <filesystem>
#include <fstream>
#include <string_view>

#include "objectcache/cache.h"

namespace objectcache::store_s3 {
namespace {

/// Profile files have some kilobytes; read_profile() refuses what is larger than this.
constexpr std::streamsize kFileBytesMax = (1 << 20) + 1;

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}
  [[nodiscard]] std::string operator()(const char* name) const {
    const auto it = environment_.variables.find(name);
    return it == environment_.variables.end() ? std::string() : it->second;
  }
  [[nodiscard]] std::string operator()(const char* name, const char* otherwise) const {
    std::string value = (*this)(name);
    return value.empty() ? (*this)(otherwise) : value;
  }

 private:
  const Environment& environment_;
};

Result<std::string> read_file(const std::string& path, bool must_exist) {
  std::error_code error;
  if (path.empty() || (!must_exist && !std::filesystem::exists(path, error))) return std::string();
  std::ifstream in(path, std::ios::binary);
  std::string out(static_cast<std::size_t>(kFileBytesMax), '\0');
  in.read(out.data(), kFileBytesMax);
  if (in.bad() || (!in.eof() && in.gcount() == 0)) {
    return fail(ErrorCode::kInvalidArgument, "the file cannot be read", "read credentials", path);
  }
  out.resize(static_cast<std::size_t>(in.gcount()));
  return out;
}

}  // namespace

Result<S3Environment> read_environment(const Environment& environment) {
  const Variables variable(environment);
  S3Environment out;
  out.access_key_id = variable("AWS_ACCESS_KEY_ID");
  out.secret_access_key = s3::Secret(variable("AWS_SECRET_ACCESS_KEY"));
  out.session_token = s3::Secret(variable("AWS_SESSION_TOKEN"));
  out.region = variable("AWS_REGION", "AWS_DEFAULT_REGION");
  out.profile = variable("AWS_PROFILE");
  out.endpoint_url = variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
  out.ca_bundle = variable("AWS_CA_BUNDLE");
  out.instance_metadata = variable("AWS_EC2_METADATA_DISABLED") != "true";
  out.container.relative_uri = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  out.container.full_uri = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");

  // A path that someone has set must be right; one that we guess need not exist.
  const auto file = [&](const char* name, const char* in_home) {
    const std::string path = variable(name);
    if (!path.empty()) return read_file(path, true);
    if (environment.home_directory.empty()) return Result<std::string>(std::string());
    return read_file(environment.home_directory + in_home, false);
  };
  auto credentials = file("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
  if (!credentials) return std::unexpected(std::move(credentials.error()));
  out.credentials_file = std::move(*credentials);
  auto config = file("AWS_CONFIG_FILE", "/.aws/config");
  if (!config) return std::unexpected(std::move(config.error()));
  out.config_file = std::move(*config);

  auto token = read_file(variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), true);
  if (!token) return std::unexpected(std::move(token.error()));
  while (token->ends_with('\n') || token->ends_with('\r')) token->pop_back();
  out.container.token =
      s3::Secret(token->empty() ? variable("AWS_CONTAINER_AUTHORIZATION_TOKEN") : *token);
  return out;
}

}  // namespace objectcache::store_s3
