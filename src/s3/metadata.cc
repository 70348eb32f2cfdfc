#include "s3/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace objectcache::s3 {
namespace {

constexpr std::string_view kRoles = "/latest/meta-data/iam/security-credentials/";
constexpr std::string_view kAction = "get credentials from the metadata service";

MetadataRequest instance_get(const Secret& token, std::string target) {
  return {.method = "GET",
          .target = std::move(target),
          .headers = {{"X-aws-ec2-metadata-token", token.reveal()}}};
}

std::string_view trimmed(std::string_view text) {
  static constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool is_token_text(std::string_view text) {
  return !text.empty() && text.size() <= 16 * 1024 &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

std::unexpected<Error> bad_answer(std::string message) {
  return fail(ErrorCode::kUnavailable, std::move(message), std::string(kAction));
}

// Addresses that may be spoken to without TLS: this machine, and the link-local services.
bool may_be_plain(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "169.254.170.2" ||
         host == "169.254.170.23" || host == "fd00:ec2::23" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

std::string string_field(const nlohmann::json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// Text of the service for a message: short, printable.
std::string for_message(std::string text) {
  if (text.size() > 200) text.resize(200);
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

MetadataRequest instance_token_request() {
  return {.method = "PUT",
          .target = "/latest/api/token",
          .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}}};
}
MetadataRequest instance_role_request(const Secret& token) {
  return instance_get(token, std::string(kRoles));
}
MetadataRequest instance_credentials_request(const Secret& token, std::string_view role) {
  return instance_get(token, fmt::format("{}{}", kRoles, path_encoded(role)));
}
MetadataRequest instance_region_request(const Secret& token) {
  return instance_get(token, "/latest/meta-data/placement/region");
}

Result<Secret> parse_instance_token(std::string_view body) {
  const std::string_view token = trimmed(body);
  if (!is_token_text(token)) return bad_answer("the session token of the service is malformed");
  return Secret(std::string(token));
}

Result<std::string> parse_instance_role(std::string_view body) {
  const std::string_view role = trimmed(trimmed(body).substr(0, trimmed(body).find('\n')));
  if (role.empty()) {
    return fail(ErrorCode::kNotFound,
                "this instance has no role; attach one or give credentials in another way",
                std::string(kAction));
  }
  if (!is_token_text(role) || role.size() > 256) return bad_answer("the role name is malformed");
  return std::string(role);
}

Result<ContainerRequest> container_request(const ContainerSettings& settings) {
  std::string url = settings.full_uri;
  if (!settings.relative_uri.empty()) {
    if (!settings.relative_uri.starts_with('/')) {
      return fail(ErrorCode::kInvalidArgument, "the relative URI must start with '/'",
                  std::string(kAction), settings.relative_uri);
    }
    url = std::string(kContainerEndpoint) + settings.relative_uri;
  }
  if (url.empty()) {
    return fail(ErrorCode::kNotFound, "no container credentials are configured",
                std::string(kAction));
  }
  const std::size_t host_start = url.find("://");
  const std::size_t path_start =
      host_start == url.npos ? url.npos : url.find_first_of("/?", host_start + 3);
  auto endpoint = parse_endpoint(std::string_view(url).substr(0, path_start));
  if (!endpoint) return std::unexpected(endpoint.error());
  if (!endpoint->tls && !may_be_plain(endpoint->host)) {
    return fail(ErrorCode::kInvalidArgument,
                "plain http is allowed only to this machine and the known metadata addresses; use "
                "https",
                std::string(kAction), endpoint->url());
  }
  ContainerRequest out{.endpoint = std::move(*endpoint), .request = {}};
  out.request.method = "GET";
  std::string target = path_start == url.npos ? "/" : url.substr(path_start);
  if (target.starts_with('?')) target.insert(0, 1, '/');
  if (!is_token_text(target)) {
    return fail(ErrorCode::kInvalidArgument, "the URI has a character that must be encoded",
                std::string(kAction));
  }
  out.request.target = std::move(target);
  out.request.headers.emplace_back("Accept", "application/json");
  const std::string_view token = trimmed(settings.token.reveal());
  if (!token.empty()) {
    if (token.find_first_of("\r\n") != token.npos) {
      return fail(ErrorCode::kInvalidArgument, "the authorization token has a line end",
                  std::string(kAction));
    }
    out.request.headers.emplace_back("Authorization", token);
  }
  return out;
}

Result<Credentials> parse_metadata_credentials(std::string_view body) {
  if (body.size() > kMetadataBodyBytesMax) return bad_answer("the answer is too large");
  // Depth is bounded by the size; the parser keeps its own stack and does not recurse.
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return bad_answer("the answer is not JSON");
  const std::string code = string_field(json, "Code");
  if (!code.empty() && code != "Success") {
    std::string message = string_field(json, "Message");
    if (message.empty()) message = string_field(json, "message");
    return bad_answer(
        fmt::format("the service says {}: {}", for_message(code), for_message(message)));
  }
  Credentials out{.access_key_id = string_field(json, "AccessKeyId"),
                  .secret_access_key = Secret(string_field(json, "SecretAccessKey")),
                  .session_token = Secret(string_field(json, "Token")),
                  .expires_at = {}};
  if (auto problem = credentials_problem(out)) return bad_answer(std::move(*problem));
  if (const std::string end = string_field(json, "Expiration"); !end.empty()) {
    out.expires_at = parse_iso8601(end);
    if (!out.expires_at) return bad_answer("the expiration date is malformed");
  }
  return out;
}

}  // namespace objectcache::s3
