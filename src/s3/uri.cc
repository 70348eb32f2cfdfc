#include "s3/uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace objectcache::s3 {
namespace {

constexpr bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

constexpr auto kUnreserved = [] {
  std::array<bool, 256> table{};
  for (unsigned i = 0; i < 256; ++i) table[i] = is_unreserved(static_cast<char>(i));
  return table;
}();

void append_encoded(std::string& out, std::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (kUnreserved[byte] || (keep_slash && c == '/')) {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 15U]);
    }
  }
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<Endpoint> bad_endpoint(std::string_view url, std::string why) {
  return fail(ErrorCode::kInvalidArgument, std::move(why), "read endpoint", std::string(url));
}

// Splits "host:port" or "[v6]:port"; `rest` is what stands behind the host, "" or ":port".
bool split_host(std::string_view authority, std::string& host, std::string_view& rest) {
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return false;
    host = authority.substr(1, end - 1);
    rest = authority.substr(end + 1);
    return !host.empty() && host.find_first_not_of("0123456789abcdefABCDEF:.%") == host.npos;
  }
  const std::size_t colon = authority.find(':');
  host = authority.substr(0, colon);
  rest = colon == std::string_view::npos ? std::string_view{} : authority.substr(colon);
  return !host.empty() && std::ranges::all_of(host, is_unreserved);
}

}  // namespace

void append_query_encoded(std::string& out, std::string_view text) {
  append_encoded(out, text, false);
}
void append_path_encoded(std::string& out, std::string_view text) {
  append_encoded(out, text, true);
}
std::string query_encoded(std::string_view text) {
  std::string out;
  append_query_encoded(out, text);
  return out;
}
std::string path_encoded(std::string_view text) {
  std::string out;
  append_path_encoded(out, text);
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

QueryBuilder& QueryBuilder::add(std::string_view name, std::string_view value) {
  encoded_.emplace_back(query_encoded(name), query_encoded(value));
  return *this;
}

std::string QueryBuilder::str() const {
  auto sorted = encoded_;
  std::ranges::sort(sorted);
  std::string out;
  for (const auto& [name, value] : sorted) {
    if (!out.empty()) out.push_back('&');
    out += name;
    out.push_back('=');
    out += value;
  }
  return out;
}

std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query,
                                                                            std::size_t pairs_max) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    if (pairs.size() == pairs_max) return std::nullopt;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = percent_decoded(pair.substr(0, equals));
    auto value = percent_decoded(pair.substr(std::min(equals + 1, pair.size())));
    if (!name || !value) return std::nullopt;
    pairs.emplace_back(std::move(*name), std::move(*value));
  }
  return pairs;
}

std::string Endpoint::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  std::string out = v6 ? fmt::format("[{}]", host) : host;
  if (port != (tls ? 443 : 80)) out += fmt::format(":{}", port);
  return out;
}

std::string Endpoint::url() const {
  return fmt::format("{}://{}{}", tls ? "https" : "http", authority(), base_path);
}

Result<Endpoint> parse_endpoint(std::string_view url) {
  Endpoint out;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    out.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return bad_endpoint(url, "must start with http:// or https://");
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  const std::string_view path = rest.substr(slash);
  if (authority.find('@') != authority.npos) {
    // Not shown: it may hold a password.
    return bad_endpoint({}, "user names and passwords do not belong in an endpoint");
  }
  if (url.find_first_of("?#") != url.npos) {
    return bad_endpoint(url, "a query or fragment does not belong in an endpoint");
  }
  std::string_view port;
  if (!split_host(authority, out.host, port)) return bad_endpoint(url, "the host name is wrong");
  out.port = out.tls ? 443 : 80;
  if (!port.empty()) {
    unsigned value = 0;
    port.remove_prefix(1);
    const bool digits =
        !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
    for (const char c : port) value = value * 10 + static_cast<unsigned>(c - '0');
    if (!digits || value == 0 || value > 65535) {
      return bad_endpoint(url, "the port must be a number from 1 to 65535");
    }
    out.port = static_cast<std::uint16_t>(value);
  }
  const auto decoded = percent_decoded(path);
  if (!decoded) return bad_endpoint(url, "the path has a '%' without two hexadecimal digits");
  out.base_path = path_encoded(*decoded);
  while (out.base_path.ends_with('/')) out.base_path.pop_back();
  return out;
}

std::optional<std::string> BucketAddress::bucket_problem(std::string_view bucket,
                                                         AddressingStyle style) {
  if (bucket.size() < 3 || bucket.size() > 63) return "a bucket name has 3 to 63 characters";
  for (const char c : bucket) {
    const bool always = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    const bool in_path = (c >= 'A' && c <= 'Z') || c == '_';
    if (always || (in_path && style == AddressingStyle::kPath)) continue;
    return in_path ? "upper case and '_' in a bucket name need path style (path_style=1)"
                   : "a bucket name has lower-case letters, digits, '-' and '.' only";
  }
  const char first = bucket.front();
  const char last = bucket.back();
  if (first == '-' || first == '.' || last == '-' || last == '.' ||
      bucket.find("..") != bucket.npos) {
    return "a bucket name starts and ends with a letter or digit and has no '..'";
  }
  return std::nullopt;
}

Result<BucketAddress> BucketAddress::create(const Endpoint& endpoint, std::string_view bucket,
                                            AddressingStyle style) {
  if (auto problem = bucket_problem(bucket, style)) {
    return fail(ErrorCode::kInvalidArgument, std::move(*problem), "read bucket name",
                std::string(bucket));
  }
  BucketAddress out;
  if (style == AddressingStyle::kPath) {
    out.host_ = endpoint.authority();
    out.bucket_path_ = fmt::format("{}/{}", endpoint.base_path, bucket);
    out.object_prefix_ = out.bucket_path_ + "/";
  } else {
    out.host_ = fmt::format("{}.{}", bucket, endpoint.authority());
    out.object_prefix_ = endpoint.base_path + "/";
    out.bucket_path_ = out.object_prefix_;
  }
  return out;
}

std::string BucketAddress::object_path(std::string_view key) const {
  std::string out;
  out.reserve(object_prefix_.size() + key.size() + 16);
  out = object_prefix_;
  append_path_encoded(out, key);
  return out;
}

}  // namespace objectcache::s3
