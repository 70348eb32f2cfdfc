#include "store/s3/lane.h"

#include <utility>

namespace objectcache::store_s3 {

Result<std::unique_ptr<Lane>> Lane::create(S3Core& core, EventLoop& loop, std::uint64_t seed) {
  std::unique_ptr<Lane> lane(new Lane(core, loop, seed));
  const Connector::Options options{.connections = core.options.connections,
                                   .connect_timeout = core.options.connect_timeout,
                                   .receive_buffer_bytes = core.options.receive_buffer_bytes};
  for (const s3::Endpoint& endpoint : core.options.endpoints) {
    auto client = core.connector->connect(loop, endpoint, options);
    if (!client) return std::unexpected(std::move(client.error()));
    lane->links_.push_back({std::move(*client), 0});
  }
  return lane;
}

std::optional<Lane::Route> Lane::enter(std::optional<std::size_t> avoid) {
  const TimePoint now = loop_.now();
  const std::size_t count = links_.size();
  // From a random start, so that many clients do not all begin with the first of the list.
  const std::size_t start = count > 1 ? static_cast<std::size_t>(random_.below(count)) : 0;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (start + i) % count;
    if (count > 1 && avoid == at) continue;
    if (best && links_[at].in_flight >= links_[*best].in_flight) continue;
    if (core_.policies.would_admit(at, now)) best = at;
  }
  if (!best && avoid && core_.policies.would_admit(*avoid, now)) best = avoid;
  if (!best) return std::nullopt;
  // Another loop may have taken the probe since.
  const CircuitBreaker::Admission admission = core_.policies.admit(*best, now);
  if (!admission.allowed) return std::nullopt;
  ++links_[*best].in_flight;
  ++in_flight_;
  S3Counters::add(core_.counters.in_flight);
  return Route{.endpoint = *best, .probe = admission.probe, .client = links_[*best].client.get()};
}

void Lane::leave(const Route& route) {
  --links_[route.endpoint].in_flight;
  --in_flight_;
  core_.counters.in_flight.fetch_sub(1, std::memory_order_relaxed);
}

std::uint32_t Lane::connections() const {
  return core_.options.connections * static_cast<std::uint32_t>(links_.size());
}

http::Request Lane::build(const RequestSpec& spec, std::size_t endpoint,
                          const s3::Credentials* credentials) {
  const s3::BucketAddress& address = core_.addresses[endpoint];
  http::Request out;
  out.method = spec.method;
  std::string path = spec.key ? address.object_path(*spec.key) : address.bucket_path();
  out.headers.reserve(spec.headers.size() + 5);
  out.headers.push_back({"Host", address.host()});
  out.headers.insert(out.headers.end(), spec.headers.begin(), spec.headers.end());
  if (credentials != nullptr) {
    if (std::string region = core_.region(); region != signer_->region()) {
      signer_.emplace(std::move(region));
    }
    views_.clear();
    for (const http::Header& header : out.headers) views_.push_back({header.name, header.value});
    const s3::RequestView view{.method = spec.method,
                               .path = path,
                               .query = spec.query,
                               .headers = views_,
                               .payload_hash = spec.payload_hash};
    s3::SignedHeaders sign = signer_->sign(view, *credentials, core_.server_time());
    out.headers.push_back({"x-amz-date", std::move(sign.x_amz_date)});
    out.headers.push_back({"x-amz-content-sha256", std::move(sign.x_amz_content_sha256)});
    if (!sign.x_amz_security_token.empty()) {
      out.headers.push_back({"x-amz-security-token", std::move(sign.x_amz_security_token)});
    }
    out.headers.push_back({"Authorization", std::move(sign.authorization)});
  }
  out.target = std::move(path);
  if (!spec.query.empty()) {
    out.target += '?';
    out.target += spec.query;
  }
  out.body = spec.body;
  out.idempotent = spec.idempotent;
  return out;
}

}  // namespace objectcache::store_s3
