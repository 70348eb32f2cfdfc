#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "format/namespace_fields.h"
#include "objectcache/namespace_spec.h"

namespace objectcache {
namespace {

using nlohmann::json;

std::unexpected<Error> refuse(std::string_view field, std::string cause) {
  return fail(ErrorCode::kInvalidArgument, std::move(cause), "read namespace", std::string(field));
}

/// The parser keeps the last of repeated fields; which one the writer meant cannot be known, so
/// the first repetition ends the reading.
Result<json> parse_object(std::string_view text) {
  std::set<std::string> seen;
  std::string repeated;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth == 1 && event == json::parse_event_t::key) {
      const auto& name = value.get_ref<const std::string&>();
      if (!seen.insert(name).second && repeated.empty()) repeated = name;
    }
    return true;
  };
  try {
    json document = json::parse(text, watch);
    if (!document.is_object()) return refuse("", "a namespace is a JSON object");
    if (!repeated.empty()) return refuse(repeated, "the field is given twice");
    return document;
  } catch (const json::exception& error) {
    return refuse("", fmt::format("this is not JSON: {}", error.what()));
  }
}

/// Takes fields out of the document, so that what is left at the end is unknown.
class FieldReader {
 public:
  explicit FieldReader(json& document) : document_(document) {}

  Result<json> take(std::string_view name) {
    const auto it = document_.find(name);
    if (it == document_.end()) return refuse(name, "the field is missing; every field is required");
    json value = std::move(*it);
    document_.erase(it);
    return value;
  }
  Result<std::string> text(std::string_view name) {
    auto value = take(name);
    if (!value) return std::unexpected(std::move(value).error());
    if (!value->is_string()) return refuse(name, "must be a string");
    return value->get<std::string>();
  }
  Result<std::uint32_t> number(std::string_view name) {
    auto value = take(name);
    if (!value) return std::unexpected(std::move(value).error());
    if (!value->is_number_unsigned() ||
        value->get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) {
      return refuse(name, "must be a whole number from 0 to 4294967295");
    }
    return value->get<std::uint32_t>();
  }

 private:
  json& document_;
};

Result<std::vector<std::uint64_t>> read_sizes(FieldReader& reader) {
  constexpr std::string_view kName = format::kBytesPerTokenField;
  auto value = reader.take(kName);
  if (!value) return std::unexpected(std::move(value).error());
  if (value->is_number_unsigned()) return std::vector{value->get<std::uint64_t>()};
  if (!value->is_array() || value->empty()) {
    return refuse(kName, "must be a whole number, or a list of one for each layer");
  }
  if (value->size() > NamespaceSpec::kLayersMax) return refuse(kName, "has too many entries");
  std::vector<std::uint64_t> sizes;
  for (const json& entry : *value) {
    if (!entry.is_number_unsigned()) return refuse(kName, "every entry must be a whole number");
    sizes.push_back(entry.get<std::uint64_t>());
  }
  return sizes;
}

Result<ObjectLayout> read_object_layout(FieldReader& reader) {
  auto text = reader.text(format::kObjectLayoutField);
  if (!text) return std::unexpected(std::move(text).error());
  if (*text == "chunk") return ObjectLayout::kChunk;
  if (*text == "layer") return ObjectLayout::kLayer;
  return refuse(format::kObjectLayoutField, "must be \"chunk\" or \"layer\"");
}

/// A later version has other fields: saying so beats naming the first of them as unknown.
Result<void> check_version(const json& document) {
  const auto it = document.find("format_version");
  if (it == document.end() || !it->is_number_unsigned()) return {};  // Reported as a field.
  if (it->get<std::uint64_t>() == NamespaceSpec::kFormatVersion) return {};
  return fail(ErrorCode::kIncompatible,
              fmt::format("version {} is unknown to this program, which knows version {}",
                          it->get<std::uint64_t>(), NamespaceSpec::kFormatVersion),
              "read namespace", "format_version");
}

}  // namespace

Result<NamespaceSpec> parse_namespace(std::string_view text) {
  if (text.size() > NamespaceSpec::kJsonBytesMax) {
    return refuse("", fmt::format("a namespace has at most {} bytes, this one has {}",
                                  NamespaceSpec::kJsonBytesMax, text.size()));
  }
  auto document = parse_object(text);
  if (!document) return std::unexpected(std::move(document).error());
  if (auto ok = check_version(*document); !ok) return std::unexpected(std::move(ok).error());

  NamespaceSpec spec;
  FieldReader reader(*document);
  for (const auto& field : format::kTextFields) {
    auto value = reader.text(field.name);
    if (!value) return std::unexpected(std::move(value).error());
    spec.*field.member = std::move(*value);
  }
  for (const auto& field : format::kNumberFields) {
    auto value = reader.number(field.name);
    if (!value) return std::unexpected(std::move(value).error());
    spec.*field.member = *value;
  }
  auto sizes = read_sizes(reader);
  if (!sizes) return std::unexpected(std::move(sizes).error());
  spec.bytes_per_token = std::move(*sizes);
  auto layout = read_object_layout(reader);
  if (!layout) return std::unexpected(std::move(layout).error());
  spec.object_layout = *layout;
  if (!document->empty()) return refuse(document->begin().key(), "the field is unknown");
  if (auto ok = validate(spec); !ok) return std::unexpected(std::move(ok).error());
  return spec;
}

}  // namespace objectcache
