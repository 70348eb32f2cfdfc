#include "format/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace objectcache::format {
namespace {

constexpr std::size_t kNamespaceHexDigits = 32;
constexpr std::size_t kFanoutDigits = 2;
constexpr std::uint32_t kObjectLayerMax = 1023;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Cuts the text up to the next `separator` off its front; false if there is none.
bool cut(std::string_view& text, std::string_view separator, std::string_view& part) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return false;
  part = text.substr(0, at);
  text.remove_prefix(at + separator.size());
  return true;
}

/// Decimal without sign and leading zeros, so that each number has one spelling.
std::optional<std::uint16_t> parse_number(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "tp0of8": rank and size behind `tag`.
bool parse_place(std::string_view text, std::string_view tag, std::uint16_t& rank,
                 std::uint16_t& size) {
  if (!text.starts_with(tag)) return false;
  text.remove_prefix(tag.size());
  std::string_view rank_text;
  if (!cut(text, "of", rank_text)) return false;
  const auto parsed_rank = parse_number(rank_text);
  const auto parsed_size = parse_number(text);
  if (!parsed_rank || !parsed_size) return false;
  rank = *parsed_rank;
  size = *parsed_size;
  return true;
}

/// "<shard>" or "<shard>.l0001".
bool parse_leaf(std::string_view leaf, ParsedObjectName& out) {
  constexpr std::size_t kLayerDigits = 4;
  const std::size_t dot = leaf.find(".l");
  if (dot != std::string_view::npos) {
    std::string_view digits = leaf.substr(dot + 2);
    if (digits.size() != kLayerDigits ||
        !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) {
      return false;
    }
    for (const char c : digits) {
      out.object_layer = out.object_layer * 10 + static_cast<std::uint32_t>(c - '0');
    }
    if (out.object_layer == 0 || out.object_layer > kObjectLayerMax) return false;
    leaf = leaf.substr(0, dot);
  }
  const auto shard = parse_shard(leaf);
  if (!shard) return false;
  out.shard = *shard;
  return true;
}

}  // namespace

std::string shard_text(const Shard& shard) {
  return fmt::format("tp{}of{}-pp{}of{}", shard.tp_rank, shard.tp_size, shard.pp_rank,
                     shard.pp_size);
}

std::optional<Shard> parse_shard(std::string_view text) {
  Shard shard;
  std::string_view tensor;
  if (!cut(text, "-", tensor)) return std::nullopt;
  if (!parse_place(tensor, "tp", shard.tp_rank, shard.tp_size)) return std::nullopt;
  if (!parse_place(text, "pp", shard.pp_rank, shard.pp_size)) return std::nullopt;
  if (!is_valid(shard)) return std::nullopt;
  return shard;
}

bool is_valid(const Shard& shard) {
  return shard.tp_rank < shard.tp_size && shard.pp_rank < shard.pp_size;
}

std::optional<std::string> tenant_problem(std::string_view tenant) {
  if (tenant.empty()) return "a tenant's name must not be empty";
  if (tenant.size() > kTenantBytesMax) {
    return fmt::format("a tenant's name has at most {} characters", kTenantBytesMax);
  }
  if (!is_lower_or_digit(tenant[0])) return "a tenant's name begins with a-z or 0-9";
  const auto known = [](char c) {
    return is_lower_or_digit(c) || c == '.' || c == '_' || c == '-';
  };
  if (!std::ranges::all_of(tenant, known)) return "a tenant's name consists of a-z 0-9 . _ -";
  return std::nullopt;
}

std::optional<std::string> prefix_problem(std::string_view prefix) {
  if (prefix.empty()) return std::nullopt;
  if (prefix.size() > kPrefixBytesMax) {
    return fmt::format("a prefix has at most {} bytes", kPrefixBytesMax);
  }
  const auto known = [](char c) {
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-' ||
           c == '/';
  };
  if (!std::ranges::all_of(prefix, known)) return "a prefix consists of A-Z a-z 0-9 . _ - and /";
  while (true) {
    std::string_view part;
    const bool last = !cut(prefix, "/", part);
    if (last) part = prefix;
    if (part.empty()) return "a prefix has no leading, trailing or doubled '/'";
    if (part == "." || part == "..") return "a prefix has no '.' or '..' component";
    if (last) return std::nullopt;
  }
}

std::string tenant_prefix(std::string_view prefix, std::string_view tenant) {
  return fmt::format("{}{}{}/", prefix, prefix.empty() ? "" : "/", tenant);
}

Result<ObjectNames> ObjectNames::create(std::string_view prefix, std::string_view tenant,
                                        const NamespaceDigest& name) {
  if (auto problem = prefix_problem(prefix)) {
    return fail(ErrorCode::kInvalidArgument, std::move(*problem), "name objects",
                std::string(prefix));
  }
  if (auto problem = tenant_problem(tenant)) {
    return fail(ErrorCode::kInvalidArgument, std::move(*problem), "name objects",
                std::string(tenant));
  }
  ObjectNames names;
  names.namespace_prefix_ = fmt::format("{}{}/", tenant_prefix(prefix, tenant),
                                        name.hex().substr(0, kNamespaceHexDigits));
  return names;
}

std::string ObjectNames::chunk_prefix(const ChunkKey& chunk) const {
  const std::string hex = chunk.hex();
  return fmt::format("{}{}/{}/", namespace_prefix_, hex.substr(0, kFanoutDigits), hex);
}

std::string ObjectNames::object(const ChunkKey& chunk, const Shard& shard,
                                std::uint32_t object_layer) const {
  std::string out = chunk_prefix(chunk) + shard_text(shard);
  if (object_layer != 0) out += fmt::format(".l{:04}", object_layer);
  return out;
}

std::optional<ParsedObjectName> parse_object_name(std::string_view prefix, std::string_view name) {
  if (!prefix.empty()) {
    if (!name.starts_with(prefix)) return std::nullopt;
    name.remove_prefix(prefix.size());
    if (!name.starts_with('/')) return std::nullopt;
    name.remove_prefix(1);
  }
  std::string_view tenant;
  std::string_view namespace_hex;
  std::string_view fanout;
  std::string_view chunk_hex;
  if (!cut(name, "/", tenant) || !cut(name, "/", namespace_hex) || !cut(name, "/", fanout) ||
      !cut(name, "/", chunk_hex)) {
    return std::nullopt;
  }
  if (tenant_problem(tenant)) return std::nullopt;
  if (namespace_hex.size() != kNamespaceHexDigits || !is_hex(namespace_hex)) return std::nullopt;
  const auto chunk = ChunkKey::from_hex(chunk_hex);
  if (!chunk || fanout != chunk_hex.substr(0, kFanoutDigits)) return std::nullopt;
  ParsedObjectName out;
  out.tenant = tenant;
  out.namespace_hex = namespace_hex;
  out.chunk = *chunk;
  if (!parse_leaf(name, out)) return std::nullopt;
  return out;
}

}  // namespace objectcache::format

namespace objectcache {

std::string Shard::to_string() const { return format::shard_text(*this); }

Result<Shard> Shard::parse(std::string_view text) {
  const std::optional<Shard> shard = format::parse_shard(text);
  if (shard) return *shard;
  return fail(ErrorCode::kInvalidArgument,
              "a shard is written like tp0of1-pp0of1, each rank below its size", "parse shard",
              std::string(text));
}

}  // namespace objectcache
