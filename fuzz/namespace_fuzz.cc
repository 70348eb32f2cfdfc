// Namespace files: any text is refused, or has a canonical form that reads back as itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "format/chunk_layout.h"
#include "objectcache/namespace_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace objectcache;  // NOLINT
  const std::string_view text(size == 0 ? "" : reinterpret_cast<const char*>(data), size);
  const auto spec = parse_namespace(text);
  if (!spec) return 0;
  const auto canonical = canonical_json(*spec);
  if (!canonical) std::abort();
  const auto again = parse_namespace(*canonical);
  if (!again) std::abort();
  const auto fixpoint = canonical_json(*again);
  if (!fixpoint || *fixpoint != *canonical) std::abort();
  if (namespace_digest(*spec).value() != namespace_digest(*again).value()) std::abort();
  // Whatever is accepted has a layout whose sums do not overflow.
  const auto layout = format::ChunkLayout::create(*spec);
  if (!layout || layout->payload_bytes() == 0) std::abort();
  for (std::uint32_t object = 0; object < layout->object_count(); ++object) {
    if (layout->object_bytes(object) > NamespaceSpec::kObjectBytesMax) std::abort();
  }
  return 0;
}
