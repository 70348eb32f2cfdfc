// Names of objects, as a LIST answers them: foreign ones are refused, ours are spelled one way.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "format/names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace objectcache;          // NOLINT
  using namespace objectcache::format;  // NOLINT
  const std::string_view name(size == 0 ? "" : reinterpret_cast<const char*>(data), size);
  for (const std::string_view prefix : {"", "team/kv"}) {
    const auto parsed = parse_object_name(prefix, name);
    if (!parsed) continue;
    const auto digest = NamespaceDigest::from_hex(parsed->namespace_hex + parsed->namespace_hex);
    if (!digest) std::abort();
    const auto names = ObjectNames::create(prefix, parsed->tenant, *digest);
    if (!names || names->object(parsed->chunk, parsed->shard, parsed->object_layer) != name) {
      std::abort();
    }
  }
  return 0;
}
