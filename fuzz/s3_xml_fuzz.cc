// XML of S3: any bytes are refused or read, within bounds; what was read and written again reads
// the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "s3/error_map.h"
#include "s3/xml.h"

namespace {

using namespace objectcache::s3;

void require(bool ok) {
  if (!ok) std::abort();
}

bool same_keys(const ListResult& a, const ListResult& b) {
  if (a.objects.size() != b.objects.size()) return false;
  for (std::size_t i = 0; i < a.objects.size(); ++i) {
    if (a.objects[i].key != b.objects[i].key) return false;
    if (a.objects[i].size_bytes != b.objects[i].size_bytes) return false;
  }
  return true;
}

void check_list(std::string_view xml) {
  const auto list = parse_list_result(xml);
  if (!list) return;
  // Only this encoding carries every byte: XML itself has none for zero and other controls.
  const auto back = parse_list_result(write_list_result(*list, KeyEncoding::kUrl));
  require(back.has_value());
  require(same_keys(*list, *back));
  require(list->common_prefixes == back->common_prefixes);
  require(list->truncated == back->truncated);
}

void check_delete(std::string_view xml) {
  if (const auto request = parse_delete_request(xml)) {
    require(!request->keys.empty() && request->keys.size() <= kDeleteKeysMax);
    const auto back = parse_delete_request(write_delete_request(*request));
    require(back.has_value() && back->keys.size() == request->keys.size());
  }
  if (const auto result = parse_delete_result(xml)) {
    for (const auto& failure : result->failures) static_cast<void>(meaning_of(failure));
    require(parse_delete_result(write_delete_result(*result)).has_value());
  }
}

void check_error(std::string_view xml) {
  FailedAnswer answer;
  answer.status = xml.empty() ? 0 : 300 + static_cast<unsigned char>(xml.back());
  answer.document = parse_error_document(xml);
  const auto meaning = meaning_of(answer);
  require(!meaning.error.message.empty());
  require(meaning.error.to_string().find('\n') == std::string::npos);
  static_cast<void>(write_error_document(answer.document));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view xml(reinterpret_cast<const char*>(data), size);
  check_list(xml);
  check_delete(xml);
  check_error(xml);
  return 0;
}
