#include "base/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace objectcache {
namespace {

constexpr std::size_t kTextBytesMax = std::size_t{64} * 1024;
constexpr std::size_t kParametersMax = 256;

std::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message), "parse URL");
}

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alpha(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> percent_decode(std::string_view text, std::string_view where) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return bad(
          fmt::format("a '%' in {} lacks its two hexadecimal digits; write %25 for '%'", where));
    }
    if (high == 0 && low == 0) return bad(fmt::format("%00 in {} is not allowed", where));
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

Result<std::string> take_scheme(std::string_view& text) {
  const std::size_t colon = text.find(':');
  std::string scheme(text.substr(0, colon == std::string_view::npos ? 0 : colon));
  bool valid = !scheme.empty() && scheme.size() <= 32 && is_alpha(scheme[0]);
  for (char& c : scheme) {
    valid = valid && (is_alpha(c) || is_digit(c) || c == '+' || c == '-' || c == '.');
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (!valid) {
    return bad("it does not begin with a scheme: write memory:, file:/dir or s3://bucket/prefix");
  }
  text.remove_prefix(colon + 1);
  return scheme;
}

Result<UrlParameter> parse_parameter(std::string_view item) {
  const std::size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  const bool valid = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return is_lower(c) || is_digit(c) || c == '_';
  });
  if (equals == std::string_view::npos || !valid) {
    return bad(
        "behind the '?' stand parameters of the form name=value, separated by '&'; names "
        "have lower-case letters, digits and '_'");
  }
  auto value = percent_decode(item.substr(equals + 1), fmt::format("parameter '{}'", name));
  if (!value) return std::unexpected(std::move(value.error()));
  return UrlParameter{std::string(name), std::move(*value)};
}

Result<std::vector<UrlParameter>> parse_parameters(std::string_view query) {
  std::vector<UrlParameter> out;
  for (;;) {
    const std::size_t end = query.find('&');
    auto parameter = parse_parameter(query.substr(0, end));
    if (!parameter) return std::unexpected(std::move(parameter.error()));
    if (std::ranges::any_of(out, [&](const auto& p) { return p.name == parameter->name; })) {
      return bad(fmt::format("parameter '{}' is given twice", parameter->name));
    }
    if (out.size() == kParametersMax) {
      return bad(fmt::format("more than {} parameters", kParametersMax));
    }
    out.push_back(std::move(*parameter));
    if (end == std::string_view::npos) return out;
    query.remove_prefix(end + 1);
  }
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kTextBytesMax) {
    return bad(fmt::format("longer than {} bytes", kTextBytesMax));
  }
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f) {
      return bad(fmt::format("a space or control character must be encoded: %{:02X}", byte));
    }
    if (c == '#') return bad("a '#' must be encoded: %23");
  }
  Url url;
  auto scheme = take_scheme(text);
  if (!scheme) return std::unexpected(std::move(scheme.error()));
  url.scheme = std::move(*scheme);

  const std::size_t question = text.find('?');
  std::string_view place = text.substr(0, question);
  if (place.starts_with("//")) {
    place.remove_prefix(2);
    url.authority = place.substr(0, place.find('/'));
    place.remove_prefix(url.authority.size());
    if (url.authority.contains('@')) {
      return bad("credentials do not belong into a URL: logs and process lists show them");
    }
    if (url.authority.contains('%')) return bad("the name behind '//' must not be encoded");
  }
  auto path = percent_decode(place, "the path");
  if (!path) return std::unexpected(std::move(path.error()));
  url.path = std::move(*path);

  if (question != std::string_view::npos) {
    auto parameters = parse_parameters(text.substr(question + 1));
    if (!parameters) return std::unexpected(std::move(parameters.error()));
    url.parameters = std::move(*parameters);
  }
  return url;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_alpha(c) || is_digit(c) || std::string_view("._~/:-").contains(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string Url::display() const {
  std::string out = scheme + ":";
  // A path of its own that begins with "//" would read back as an authority.
  if (!authority.empty() || path.starts_with("//")) out += "//" + authority;
  return out + percent_encode(path);
}

}  // namespace objectcache
