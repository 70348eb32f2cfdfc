#pragma once

#include <array>
#include <string_view>

#include "objectcache/namespace_spec.h"

namespace objectcache::format {

/// The names of the fields in a namespace file (docs/formats/namespace.md): the one table that
/// reading, checking and writing share.
struct TextField {
  std::string_view name;
  std::string NamespaceSpec::* member;
  bool may_be_none;  ///< False: the field always applies, "none" is refused.
};
inline constexpr std::array<TextField, 15> kTextFields = {{
    {"adapter_id", &NamespaceSpec::adapter_id, true},
    {"adapter_revision", &NamespaceSpec::adapter_revision, true},
    {"attention_backend", &NamespaceSpec::attention_backend, true},
    {"cipher", &NamespaceSpec::cipher, true},
    {"codec", &NamespaceSpec::codec, true},
    {"element_order", &NamespaceSpec::element_order, false},
    {"hash_algorithm", &NamespaceSpec::hash_algorithm, false},
    {"hash_seed", &NamespaceSpec::hash_seed, true},
    {"instruction_set", &NamespaceSpec::instruction_set, true},
    {"kv_dtype", &NamespaceSpec::kv_dtype, false},
    {"kv_quantization", &NamespaceSpec::kv_quantization, true},
    {"kv_scales", &NamespaceSpec::kv_scales, true},
    {"model_architecture", &NamespaceSpec::model_architecture, false},
    {"model_fingerprint", &NamespaceSpec::model_fingerprint, false},
    {"position_encoding", &NamespaceSpec::position_encoding, true},
}};

struct NumberField {
  std::string_view name;
  std::uint32_t NamespaceSpec::* member;
};
inline constexpr std::array<NumberField, 5> kNumberFields = {{
    {"chunk_tokens", &NamespaceSpec::chunk_tokens},
    {"engine_block_tokens", &NamespaceSpec::engine_block_tokens},
    {"format_version", &NamespaceSpec::format_version},
    {"layers", &NamespaceSpec::layers},
    {"unit_tokens", &NamespaceSpec::unit_tokens},
}};

inline constexpr std::string_view kObjectLayoutField = "object_layout";
inline constexpr std::string_view kBytesPerTokenField = "bytes_per_token";

}  // namespace objectcache::format
