#include "store/s3/etag.h"

#include "digest/hex.h"
#include "digest/md5.h"

namespace objectcache::store_s3 {

store::ObjectVersion version_of(std::optional<std::string_view> etag) {
  if (!etag || etag->empty()) return {};
  if (etag->back() == '"') return {std::string(*etag)};
  return {"\"" + std::string(*etag) + "\""};
}

std::string etag_of(const std::vector<ConstSegment>& body) {
  // Rare, and MD5 wants one piece.
  std::vector<std::byte> whole;
  for (const ConstSegment& segment : body)
    whole.insert(whole.end(), segment.begin(), segment.end());
  return "\"" + digest::hex(digest::md5(whole)) + "\"";
}

}  // namespace objectcache::store_s3
