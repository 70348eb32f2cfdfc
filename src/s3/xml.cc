#include "s3/xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <pugixml.hpp>

#include "s3/uri.h"

namespace objectcache::s3 {
namespace {

constexpr std::string_view kProlog = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
constexpr std::string_view kNamespace = "http://s3.amazonaws.com/doc/2006-03-01/";

std::unexpected<Error> bad_document(std::string_view what, std::string why) {
  return fail(ErrorCode::kUnavailable, std::move(why), fmt::format("read {}", what));
}

// A document of at most the stated size. Nothing here recurses into it, so its depth is harmless.
class Document {
 public:
  // Empty, or says why `xml` is refused.
  std::string load(std::string_view xml) {
    if (xml.size() > kXmlBytesMax) return fmt::format("{} bytes are too many", xml.size());
    if (static_cast<std::size_t>(std::ranges::count(xml, '<')) > kXmlTagsMax) {
      return "it has too many tags";
    }
    // White space alone may be a whole key. DOCTYPE is kept as a node so that it can be refused.
    constexpr unsigned kOptions = pugi::parse_cdata | pugi::parse_escapes | pugi::parse_eol |
                                  pugi::parse_ws_pcdata_single | pugi::parse_doctype;
    const auto parsed =
        document_.load_buffer(xml.data(), xml.size(), kOptions, pugi::encoding_utf8);
    if (!parsed) {
      return fmt::format("it is not XML: {} at byte {}", parsed.description(), parsed.offset);
    }
    for (const pugi::xml_node node : document_.children()) {
      if (node.type() == pugi::node_doctype) return "it has a DOCTYPE";
    }
    return {};
  }
  [[nodiscard]] pugi::xml_node child(const char* name) const { return document_.child(name); }
  [[nodiscard]] std::string root_name() const {
    std::string name = document_.document_element().name();
    if (name.size() > 40) name.resize(40);
    return name;
  }

 private:
  pugi::xml_document document_;
};

std::string text_of(pugi::xml_node parent, const char* name) {
  return parent.child(name).child_value();
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// With EncodingType url, a space may also be written '+' (AWS does).
class KeyDecoder {
 public:
  explicit KeyDecoder(bool url_encoded) : url_encoded_(url_encoded) {}
  [[nodiscard]] std::optional<std::string> decode(std::string text) const {
    if (!url_encoded_) return text;
    std::ranges::replace(text, '+', ' ');
    return percent_decoded(text);
  }

 private:
  bool url_encoded_;
};

// Empty on success, else says what is wrong.
std::string read_object(pugi::xml_node node, const KeyDecoder& keys, ListedObject& out) {
  auto key = keys.decode(text_of(node, "Key"));
  if (!key || key->empty()) return "a key is empty or badly encoded";
  out.key = std::move(*key);
  const auto size = number_of(text_of(node, "Size"));
  if (!size) return "an object has no valid size";
  out.size_bytes = *size;
  out.etag = text_of(node, "ETag");
  if (const std::string date = text_of(node, "LastModified"); !date.empty()) {
    const auto modified = parse_iso8601(date);
    if (!modified) return "an object has no valid date";
    out.modified = *modified;
  }
  return {};
}

std::string read_list(pugi::xml_node root, ListResult& out) {
  const KeyDecoder keys(text_of(root, "EncodingType") == "url");
  out.bucket = text_of(root, "Name");
  out.continuation_token = text_of(root, "ContinuationToken");
  out.next_continuation_token = text_of(root, "NextContinuationToken");
  const std::string truncated = text_of(root, "IsTruncated");
  if (truncated != "true" && truncated != "false") return "IsTruncated is neither true nor false";
  out.truncated = truncated == "true";
  if (const auto max = number_of(text_of(root, "MaxKeys"))) {
    out.max_keys = static_cast<std::uint32_t>(std::min<std::uint64_t>(*max, UINT32_MAX));
  }
  const auto read_text = [&](const char* name, std::string& to) {
    auto text = keys.decode(text_of(root, name));
    if (text) to = std::move(*text);
    return text.has_value();
  };
  if (!read_text("Prefix", out.prefix) || !read_text("Delimiter", out.delimiter) ||
      !read_text("StartAfter", out.start_after)) {
    return "the prefix, delimiter or start is badly encoded";
  }
  for (const pugi::xml_node node : root.children("Contents")) {
    if (auto problem = read_object(node, keys, out.objects.emplace_back()); !problem.empty()) {
      return problem;
    }
  }
  for (const pugi::xml_node node : root.children("CommonPrefixes")) {
    for (const pugi::xml_node prefix : node.children("Prefix")) {
      auto text = keys.decode(prefix.child_value());
      if (!text || text->empty()) return "a common prefix is empty or badly encoded";
      out.common_prefixes.push_back(std::move(*text));
    }
  }
  return {};
}

void append_element(std::string& out, std::string_view name, std::string_view text) {
  out += '<';
  out += name;
  out += '>';
  append_xml_escaped(out, text);
  out += "</";
  out += name;
  out += '>';
}

void append_element_if(std::string& out, std::string_view name, std::string_view text) {
  if (!text.empty()) append_element(out, name, text);
}

}  // namespace

void append_xml_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Raw line ends would be normalised by the reader, and other controls are not XML at all.
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("&#{};", static_cast<int>(c));
        } else {
          out += c;
        }
    }
  }
}

// ---------------------------------------------------------------- ListObjectsV2

Result<ListResult> parse_list_result(std::string_view xml) {
  constexpr std::string_view kWhat = "listing";
  Document document;
  if (auto problem = document.load(xml); !problem.empty()) {
    return bad_document(kWhat, std::move(problem));
  }
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!root) {
    return bad_document(
        kWhat, fmt::format("expected <ListBucketResult>, found <{}>", document.root_name()));
  }
  ListResult out;
  if (auto problem = read_list(root, out); !problem.empty()) {
    return bad_document(kWhat, std::move(problem));
  }
  return out;
}

std::string write_list_result(const ListResult& result, KeyEncoding encoding) {
  const auto encoded = [&](std::string_view text) {
    return encoding == KeyEncoding::kUrl ? path_encoded(text) : std::string(text);
  };
  std::string out;
  out.reserve(512 + result.objects.size() * 320);
  out += kProlog;
  out += fmt::format("<ListBucketResult xmlns=\"{}\">", kNamespace);
  append_element(out, "Name", result.bucket);
  append_element(out, "Prefix", encoded(result.prefix));
  append_element_if(out, "Delimiter", encoded(result.delimiter));
  append_element_if(out, "StartAfter", encoded(result.start_after));
  append_element_if(out, "ContinuationToken", result.continuation_token);
  append_element_if(out, "NextContinuationToken", result.next_continuation_token);
  append_element(out, "MaxKeys", fmt::to_string(result.max_keys));
  append_element(out, "KeyCount",
                 fmt::to_string(result.objects.size() + result.common_prefixes.size()));
  if (encoding == KeyEncoding::kUrl) append_element(out, "EncodingType", "url");
  append_element(out, "IsTruncated", result.truncated ? "true" : "false");
  for (const ListedObject& object : result.objects) {
    out += "<Contents>";
    append_element(out, "Key", encoded(object.key));
    append_element(out, "LastModified", format_iso8601(object.modified));
    append_element(out, "ETag", object.etag);
    append_element(out, "Size", fmt::to_string(object.size_bytes));
    append_element(out, "StorageClass", "STANDARD");
    out += "</Contents>";
  }
  for (const std::string& prefix : result.common_prefixes) {
    out += "<CommonPrefixes>";
    append_element(out, "Prefix", encoded(prefix));
    out += "</CommonPrefixes>";
  }
  out += "</ListBucketResult>";
  return out;
}

// ---------------------------------------------------------------- DeleteObjects

std::string write_delete_request(const DeleteRequest& request) {
  std::string out;
  out.reserve(128 + request.keys.size() * 160);
  out += kProlog;
  out += fmt::format("<Delete xmlns=\"{}\">", kNamespace);
  if (request.quiet) append_element(out, "Quiet", "true");
  for (const std::string& key : request.keys) {
    out += "<Object>";
    append_element(out, "Key", key);
    out += "</Object>";
  }
  out += "</Delete>";
  return out;
}

Result<DeleteRequest> parse_delete_request(std::string_view xml) {
  const auto refused = [](std::string why) {
    return fail(ErrorCode::kInvalidArgument, std::move(why), "read delete request");
  };
  Document document;
  if (auto problem = document.load(xml); !problem.empty()) return refused(std::move(problem));
  const pugi::xml_node root = document.child("Delete");
  if (!root) return refused(fmt::format("expected <Delete>, found <{}>", document.root_name()));
  DeleteRequest out;
  out.quiet = text_of(root, "Quiet") == "true";
  for (const pugi::xml_node node : root.children("Object")) {
    if (out.keys.size() == kDeleteKeysMax) return refused("it names more than 1000 keys");
    out.keys.push_back(text_of(node, "Key"));
    if (out.keys.back().empty()) return refused("a key is empty");
  }
  if (out.keys.empty()) return refused("it names no key");
  return out;
}

Result<DeleteResult> parse_delete_result(std::string_view xml) {
  constexpr std::string_view kWhat = "answer to DeleteObjects";
  Document document;
  if (auto problem = document.load(xml); !problem.empty()) {
    return bad_document(kWhat, std::move(problem));
  }
  const pugi::xml_node root = document.child("DeleteResult");
  if (!root) {
    return bad_document(kWhat,
                        fmt::format("expected <DeleteResult>, found <{}>", document.root_name()));
  }
  DeleteResult out;
  for (const pugi::xml_node node : root.children("Deleted")) {
    out.deleted.push_back(text_of(node, "Key"));
  }
  for (const pugi::xml_node node : root.children("Error")) {
    out.failures.push_back({.key = text_of(node, "Key"),
                            .code = text_of(node, "Code"),
                            .message = text_of(node, "Message")});
  }
  return out;
}

std::string write_delete_result(const DeleteResult& result) {
  std::string out(kProlog);
  out += fmt::format("<DeleteResult xmlns=\"{}\">", kNamespace);
  for (const std::string& key : result.deleted) {
    out += "<Deleted>";
    append_element(out, "Key", key);
    out += "</Deleted>";
  }
  for (const DeleteFailure& failure : result.failures) {
    out += "<Error>";
    append_element(out, "Key", failure.key);
    append_element(out, "Code", failure.code);
    append_element(out, "Message", failure.message);
    out += "</Error>";
  }
  out += "</DeleteResult>";
  return out;
}

// ---------------------------------------------------------------- Error

ErrorDocument parse_error_document(std::string_view xml) {
  ErrorDocument out;
  Document document;
  if (xml.empty() || !document.load(xml).empty()) return out;
  const pugi::xml_node root = document.child("Error");
  out.code = text_of(root, "Code");
  out.message = text_of(root, "Message");
  out.request_id = text_of(root, "RequestId");
  out.resource = text_of(root, "Resource");
  out.region = text_of(root, "Region");
  out.endpoint = text_of(root, "Endpoint");
  out.server_time = text_of(root, "ServerTime");
  return out;
}

std::string write_error_document(const ErrorDocument& error) {
  std::string out(kProlog);
  out += "<Error>";
  append_element(out, "Code", error.code);
  append_element(out, "Message", error.message);
  append_element_if(out, "Resource", error.resource);
  append_element_if(out, "Region", error.region);
  append_element_if(out, "Endpoint", error.endpoint);
  append_element_if(out, "ServerTime", error.server_time);
  append_element_if(out, "RequestId", error.request_id);
  out += "</Error>";
  return out;
}

}  // namespace objectcache::s3
