#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "objectcache/error.h"
#include "s3/http_date.h"

/// The XML documents of S3, both ways.
///
/// Parsers are for foreign bytes: at most kXmlBytesMax bytes and kXmlTagsMax tags, no DOCTYPE (so
/// no entities but the five of XML), unknown elements are skipped. Their errors are kUnavailable:
/// an answer that is no S3 document comes from a broken server or something between. Writers make
/// documents that these parsers and the usual clients read.
namespace objectcache::s3 {

inline constexpr std::size_t kXmlBytesMax = std::size_t{8} << 20;
inline constexpr std::size_t kXmlTagsMax = 100'000;

// ---------------------------------------------------------------- ListObjectsV2

struct ListedObject {
  std::string key;
  std::uint64_t size_bytes = 0;
  std::string etag;  ///< As written in the document, quotes included.
  WallTime modified{};
};
struct ListResult {
  std::string bucket;
  std::string prefix;
  std::string delimiter;
  std::string start_after;
  std::string continuation_token;
  std::string next_continuation_token;  ///< Empty: none was given.
  std::uint32_t max_keys = 1000;
  bool truncated = false;
  std::vector<ListedObject> objects;
  std::vector<std::string> common_prefixes;
};
/// Keys, prefixes and delimiter come out decoded, whether or not the document says
/// `<EncodingType>url</EncodingType>`.
[[nodiscard]] Result<ListResult> parse_list_result(std::string_view xml);

enum class KeyEncoding : std::uint8_t { kNone, kUrl };
[[nodiscard]] std::string write_list_result(const ListResult& result, KeyEncoding encoding);

// ---------------------------------------------------------------- DeleteObjects

inline constexpr std::size_t kDeleteKeysMax = 1000;

struct DeleteRequest {
  std::vector<std::string> keys;
  bool quiet = false;  ///< The answer then names failures only.
};
[[nodiscard]] std::string write_delete_request(const DeleteRequest& request);
/// kInvalidArgument where a client sent it wrong, or more than kDeleteKeysMax keys.
[[nodiscard]] Result<DeleteRequest> parse_delete_request(std::string_view xml);

struct DeleteFailure {
  std::string key;
  std::string code;
  std::string message;
};
struct DeleteResult {
  std::vector<std::string> deleted;
  std::vector<DeleteFailure> failures;
};
[[nodiscard]] Result<DeleteResult> parse_delete_result(std::string_view xml);
[[nodiscard]] std::string write_delete_result(const DeleteResult& result);

// ---------------------------------------------------------------- Error

struct ErrorDocument {
  std::string code;
  std::string message;
  std::string request_id;
  std::string resource;
  std::string region;       ///< Of wrong-region answers: where the bucket is.
  std::string endpoint;     ///< Of redirects: the host to ask instead.
  std::string server_time;  ///< Of RequestTimeTooSkewed, ISO 8601.
};
/// An answer without a readable document, which is common behind proxies, gives empty fields.
[[nodiscard]] ErrorDocument parse_error_document(std::string_view xml);
[[nodiscard]] std::string write_error_document(const ErrorDocument& error);

// ---------------------------------------------------------------- text

/// Appends `text` as XML character data.
void append_xml_escaped(std::string& out, std::string_view text);

}  // namespace objectcache::s3
