#include "store/s3/s3_url.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/parameters.h"
#include "base/system_wall_clock.h"
#include "s3/profiles.h"
#include "store/s3/metadata_fetch.h"
#include "store/s3/pool_connector.h"

namespace objectcache::store_s3 {
namespace {

enum class PathStyle : std::uint8_t { kAuto, kPath, kVirtualHost };

/// Parameters that need more than a conversion of their text.
struct Raw {
  std::string endpoint;
  std::string region;
  std::string profile;
  std::string ca;
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;
  PathStyle path_style = PathStyle::kAuto;
  bool instance_metadata = true;
};

void read_parameters(ParameterReader& in, Raw& raw, S3Options& options) {
  in.text("endpoint", raw.endpoint);
  in.text("region", raw.region);
  in.choice("path_style",
            {{"auto", PathStyle::kAuto},
             {"true", PathStyle::kPath},
             {"on", PathStyle::kPath},
             {"false", PathStyle::kVirtualHost},
             {"off", PathStyle::kVirtualHost}},
            raw.path_style);
  in.text("ca", raw.ca);

  in.text("profile", raw.profile);
  in.text("access_key_id", raw.access_key_id);
  in.text("secret_access_key", raw.secret_access_key);
  in.text("session_token", raw.session_token);
  in.flag("anonymous", options.anonymous);
  in.flag("instance_metadata", raw.instance_metadata);
  in.choice("sign_payload",
            {{"auto", SignPayload::kAuto},
             {"always", SignPayload::kAlways},
             {"never", SignPayload::kNever}},
            options.sign_payload);

  in.count("connections", 1, 4096, options.connections);
  in.duration("connect_timeout", options.connect_timeout);
  in.duration("stall_timeout", options.stall_timeout);
  in.duration("request_timeout", options.request_timeout);
  std::uint32_t retries = options.retry.attempts_max - 1;
  in.count("retries", 0, 100, retries);
  options.retry.attempts_max = retries + 1;
  options.retry.attempts_total_max = 10 * (retries + 1);
  if (retries == 0) options.retry.attempts_total_max = 1;
  in.duration("retry_delay_max", options.retry.backoff_max);
  in.flag("hedge", options.hedge.enabled);
  std::uint64_t requests_per_second = 0;
  in.count("requests_per_second", 0, 1'000'000, requests_per_second);
  options.rate.requests_per_second_max = static_cast<double>(requests_per_second);
  in.size("receive_buffer", options.receive_buffer_bytes);
  in.rate("link_rate", options.link_bytes_per_second);

  const auto positive = [&](std::string_view name, Duration value) {
    if (value <= Duration::zero()) in.refuse(name, "must be more than nothing");
  };
  positive("connect_timeout", options.connect_timeout);
  positive("stall_timeout", options.stall_timeout);
  positive("retry_delay_max", options.retry.backoff_max);
  if (options.receive_buffer_bytes > (1ULL << 30)) in.refuse("receive_buffer", "at most 1GiB");
}

std::unexpected<Error> bad(const Url& url, std::string_view parameter, std::string message) {
  return fail(ErrorCode::kInvalidArgument, fmt::format("parameter '{}': {}", parameter, message),
              "open", url.display());
}

bool is_aws(const s3::Endpoint& endpoint) {
  return endpoint.host.ends_with(".amazonaws.com") || endpoint.host.ends_with(".amazonaws.com.cn");
}

/// "http://a:1,http://b:2"
Result<std::vector<s3::Endpoint>> parse_endpoints(const Url& url, std::string_view text) {
  std::vector<s3::Endpoint> out;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    auto endpoint = s3::parse_endpoint(text.substr(0, comma));
    if (!endpoint) return bad(url, "endpoint", endpoint.error().message);
    if (std::ranges::any_of(out, [&](const auto& e) { return e.url() == endpoint->url(); })) {
      return bad(url, "endpoint", endpoint->url() + " is named twice");
    }
    out.push_back(std::move(*endpoint));
    if (out.size() > 64) return bad(url, "endpoint", "at most 64 endpoints");
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return bad(url, "endpoint", "an endpoint is empty");
  }
  return out;
}

Result<s3::Profile> read_profile_of(const Url& url, const Raw& raw, const S3Environment& env) {
  const std::string& asked = !raw.profile.empty() ? raw.profile : env.profile;
  auto profile =
      s3::read_profile(env.credentials_file, env.config_file, asked.empty() ? "default" : asked);
  if (profile) return profile;
  // Nobody has asked for "default": without it the files simply say nothing.
  if (asked.empty() && profile.error().code == ErrorCode::kNotFound) return s3::Profile{};
  Error error = std::move(profile.error());
  error.code = ErrorCode::kInvalidArgument;
  error.message = fmt::format("profile '{}': {}", asked.empty() ? "default" : asked, error.message);
  error.action = "open";
  error.key = url.display();
  return std::unexpected(std::move(error));
}

Result<void> choose_credentials(const Url& url, const Raw& raw, const S3Environment& env,
                                const s3::Profile& profile, S3Settings& out) {
  if (out.options.anonymous) return {};
  if (raw.access_key_id.empty() != raw.secret_access_key.empty()) {
    return bad(url, raw.access_key_id.empty() ? "access_key_id" : "secret_access_key",
               "a key pair has two parts, and one is missing");
  }
  if (!raw.access_key_id.empty()) {
    out.credentials = s3::Credentials{.access_key_id = raw.access_key_id,
                                      .secret_access_key = s3::Secret(raw.secret_access_key),
                                      .session_token = s3::Secret(raw.session_token),
                                      .expires_at = {}};
  } else if (!raw.session_token.empty()) {
    return bad(url, "session_token", "goes with access_key_id and secret_access_key");
  } else if (!raw.profile.empty() && !profile.credentials) {
    return bad(url, "profile", "the profile has no keys");
  } else if (raw.profile.empty() && !env.access_key_id.empty() && !env.secret_access_key.empty()) {
    out.credentials = s3::Credentials{.access_key_id = env.access_key_id,
                                      .secret_access_key = env.secret_access_key,
                                      .session_token = env.session_token,
                                      .expires_at = {}};
  } else {
    out.credentials = profile.credentials;
  }
  if (out.credentials) {
    if (const auto problem = s3::credentials_problem(*out.credentials)) {
      return fail(ErrorCode::kInvalidArgument, *problem, "open", url.display());
    }
  }
  out.container = env.container;
  out.instance_metadata = raw.instance_metadata && env.instance_metadata;
  return {};
}

s3::AddressingStyle choose_style(const Raw& raw, const s3::Profile& profile,
                                 const S3Options& options) {
  if (raw.path_style == PathStyle::kPath) return s3::AddressingStyle::kPath;
  if (raw.path_style == PathStyle::kVirtualHost) return s3::AddressingStyle::kVirtualHost;
  const std::string said = profile.addressing_style.value_or("auto");
  if (said == "path") return s3::AddressingStyle::kPath;
  if (said == "virtual") return s3::AddressingStyle::kVirtualHost;
  // A dot in the bucket's name does not match the certificate of *.s3.amazonaws.com.
  const bool virtual_host =
      std::ranges::all_of(options.endpoints, is_aws) && !options.bucket.contains('.');
  return virtual_host ? s3::AddressingStyle::kVirtualHost : s3::AddressingStyle::kPath;
}

template <class... Text>
std::string first_of(const Text&... texts) {
  std::string out;
  static_cast<void>(((out = texts, !out.empty()) || ...));
  return out;
}

}  // namespace

Result<S3Settings> read_s3_url(const Url& url, const S3Environment& env) {
  S3Settings out;
  S3Options& options = out.options;
  Raw raw;
  ParameterReader in(url.parameters);
  read_parameters(in, raw, options);
  if (auto done = in.finish(); !done) {
    Error error = std::move(done.error());
    if (error.action.empty()) error.action = "open";
    if (error.key.empty()) error.key = url.display();
    return std::unexpected(std::move(error));
  }
  if (url.authority.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the URL names no bucket: s3://bucket/prefix", "open",
                url.display());
  }
  options.bucket = url.authority;
  options.prefix = url.path;
  while (options.prefix.starts_with('/')) options.prefix.erase(0, 1);
  while (options.prefix.ends_with('/')) options.prefix.pop_back();

  const auto profile = read_profile_of(url, raw, env);
  if (!profile) return std::unexpected(profile.error());

  const std::string region = first_of(raw.region, env.region, profile->region.value_or(""));
  options.region_is_explicit = !region.empty();
  if (!region.empty()) options.region = region;
  options.ca_file = first_of(raw.ca, env.ca_bundle, profile->ca_bundle.value_or(""));

  const std::string endpoint =
      first_of(raw.endpoint, env.endpoint_url, profile->endpoint_url.value_or(""),
               "https://s3." + options.region + ".amazonaws.com");
  auto endpoints = parse_endpoints(url, endpoint);
  if (!endpoints) return std::unexpected(std::move(endpoints.error()));
  options.endpoints = std::move(*endpoints);
  options.style = choose_style(raw, *profile, options);

  if (auto chosen = choose_credentials(url, raw, env, *profile, out); !chosen) {
    return std::unexpected(std::move(chosen.error()));
  }
  return out;
}

Result<std::shared_ptr<CredentialSource>> credential_source(const S3Settings& settings,
                                                            std::shared_ptr<const WallClock> wall,
                                                            std::shared_ptr<Connector> connector) {
  using Source = std::shared_ptr<CredentialSource>;
  if (settings.options.anonymous) return Source(std::make_shared<FixedCredentials>(nullptr));
  if (settings.credentials) {
    return Source(std::make_shared<FixedCredentials>(
        std::make_shared<const s3::Credentials>(*settings.credentials)));
  }
  auto container = container_fetch(connector, settings.container);
  if (container) {
    return Source(std::make_shared<FetchedCredentials>(std::move(wall), std::move(*container)));
  }
  if (container.error().code != ErrorCode::kNotFound) {
    return std::unexpected(std::move(container.error()));
  }
  if (settings.instance_metadata) {
    return Source(std::make_shared<FetchedCredentials>(
        std::move(wall),
        instance_fetch(std::move(connector), *s3::parse_endpoint(s3::kInstanceEndpoint))));
  }
  return fail(ErrorCode::kPermissionDenied,
              "no credentials: not in the URL, the environment or a profile; give "
              "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or say anonymous=on",
              "open", settings.options.url());
}

Result<std::unique_ptr<S3Store>> open_s3(const Url& url, const S3Environment& environment,
                                         std::shared_ptr<const WallClock> wall) {
  auto settings = read_s3_url(url, environment);
  if (!settings) return std::unexpected(std::move(settings.error()));
  auto connector = std::make_shared<PoolConnector>(settings->options.ca_file);
  // The metadata services speak plain HTTP: no CA matters to them.
  auto credentials = credential_source(*settings, wall, connector);
  if (!credentials) return std::unexpected(std::move(credentials.error()));
  std::random_device device;
  return S3Store::create(std::move(settings->options),
                         {.wall = std::move(wall),
                          .connector = std::move(connector),
                          .credentials = std::move(*credentials),
                          .seed = (std::uint64_t{device()} << 32) | device()});
}

Result<std::unique_ptr<S3Store>> open_s3(const Url& url, const Environment& environment) {
  const auto read = read_environment(environment);
  if (!read) return std::unexpected(read.error());
  return open_s3(url, *read, std::make_shared<SystemWallClock>());
}

}  // namespace objectcache::store_s3
