#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "objectcache/types.h"
#include "store/object_store.h"

namespace objectcache::store_s3 {

/// The version that an ETag names, in quotes whether or not the server wrote them: headers and
/// listings differ in that. Empty for none.
[[nodiscard]] store::ObjectVersion version_of(std::optional<std::string_view> etag);

/// What S3 answers as the ETag of an object that was put in one piece: its MD5, quoted.
[[nodiscard]] std::string etag_of(const std::vector<ConstSegment>& body);

}  // namespace objectcache::store_s3
