#include "cli/bench/read_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "base/url.h"
#include "digest/crc32c.h"
#include "s3/sigv4.h"
#include "s3/uri.h"

namespace objectcache::cli {
namespace {

/// Objects are windows into one buffer, each so much further on than the one before.
constexpr std::uint64_t kStepBytes = 64U << 10;
/// As chunk headers place slices.
constexpr std::uint64_t kAlignBytes = 4096;

std::string variable(const Environment& environment, const std::string& name) {
  const auto it = environment.variables.find(name);
  return it == environment.variables.end() ? std::string() : it->second;
}

/// What the clients that are not ours must be told of a store that is named by URL.
Result<ReadWorkload> describe_store(const std::string& text) {
  auto url = parse_url(text);
  if (!url) return std::unexpected(std::move(url.error()));
  const auto parameter = [&](std::string_view name) -> std::string {
    for (const UrlParameter& p : url->parameters) {
      if (p.name == name) return p.value;
    }
    return {};
  };
  if (url->scheme != "s3" || parameter("endpoint").empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "this bench compares S3 clients: give s3://bucket/prefix?endpoint=...", "bench",
                url->display());
  }
  auto endpoint = s3::parse_endpoint(parameter("endpoint"));
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  ReadWorkload out;
  out.url = text;
  out.host = endpoint->host;
  out.port = endpoint->port;
  out.tls = endpoint->tls;
  out.ca_file = parameter("ca");
  out.bucket = url->authority;
  out.region = parameter("region").empty() ? "us-east-1" : parameter("region");
  if (url->path.size() > 1) out.key_prefix = url->path.substr(1) + "/";
  return out;
}

}  // namespace

Result<ReadTarget> ReadTarget::create(const std::string& url, const Environment& environment,
                                      std::uint32_t objects) {
  auto base = describe_store(url);
  if (!base) return std::unexpected(std::move(base.error()));
  ReadTarget out;
  out.environment_ = environment;
  out.base_ = std::move(*base);
  for (std::uint32_t i = 0; i < objects; ++i) {
    out.base_.objects.push_back({.key = fmt::format("ranges/{}/{:03}", out.scheme(), i),
                                 .path = {},
                                 .amz_date = {},
                                 .authorization = {}});
  }
  out.content_.resize(kObjectBytes + objects * kStepBytes);
  Random random(1);
  for (std::size_t i = 0; i < out.content_.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(out.content_.data() + i, &word, sizeof word);
  }
  return out;
}

ConstSegment ReadTarget::content(std::uint32_t object) const {
  return ConstSegment(content_).subspan(object * kStepBytes, kObjectBytes);
}

Result<void> ReadTarget::put(BenchStore& store) const {
  const auto count = static_cast<std::uint32_t>(base_.objects.size());
  return store.put(count, [&](std::uint32_t i) {
    return BenchStore::Object{base_.objects[i].key, {content(i)}};
  });
}

void ReadTarget::sign() {
  const s3::Credentials credentials{
      .access_key_id = variable(environment_, "AWS_ACCESS_KEY_ID"),
      .secret_access_key = s3::Secret(variable(environment_, "AWS_SECRET_ACCESS_KEY")),
      .session_token = {},
      .expires_at = {}};
  s3::Signer signer(base_.region);
  const std::string host = fmt::format("{}:{}", base_.host, base_.port);
  const std::vector<s3::HeaderView> headers{{"host", host}};
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  for (ReadWorkload::Object& object : base_.objects) {
    object.path = s3::path_encoded("/" + base_.bucket + "/" + base_.key_prefix + object.key);
    s3::SignedHeaders sign = signer.sign({.method = "GET",
                                          .path = object.path,
                                          .query = {},
                                          .headers = headers,
                                          .payload_hash = s3::kUnsignedPayload},
                                         credentials, now);
    object.amz_date = std::move(sign.x_amz_date);
    object.authorization = std::move(sign.authorization);
  }
}

ReadWorkload ReadTarget::workload(const Sizes& sizes, std::uint64_t seed) const {
  ReadWorkload out = base_;
  out.connections = sizes.connections;
  out.length = std::uint64_t{sizes.range_kib} << 10;
  out.warm_up = 4 * sizes.connections;
  const std::uint64_t measured =
      std::max<std::uint64_t>(1, (std::uint64_t{sizes.mib} << 20) / out.length);
  Random random(seed);
  for (std::uint64_t i = 0; i < out.warm_up + measured; ++i) {
    const auto object = static_cast<std::uint32_t>(random.below(out.objects.size()));
    const std::uint64_t offset =
        random.below((kObjectBytes - out.length) / kAlignBytes + 1) * kAlignBytes;
    out.ranges.push_back(
        {object, offset, digest::crc32c(content(object).subspan(offset, out.length))});
  }
  return out;
}

}  // namespace objectcache::cli
