#include "cli/kv_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

namespace objectcache::cli {
namespace {

std::unexpected<Error> bad(std::string message, std::string key = {}) {
  return fail(ErrorCode::kInvalidArgument, std::move(message), "read KV file", std::move(key));
}

/// The namespace's kv_dtype in the spelling of safetensors; empty: it has none.
std::string_view safetensors_dtype(std::string_view kv_dtype) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"bfloat16", "BF16"},
      {"float16", "F16"},
      {"float32", "F32"},
      {"float64", "F64"},
      {"fp8_e4m3", "F8_E4M3"},
      {"fp8_e5m2", "F8_E5M2"},
      {"int8", "I8"},
      {"uint8", "U8"},
      {"float8_e4m3fn", "F8_E4M3"},
      {"float8_e5m2", "F8_E5M2"}};
  for (const auto& [ours, theirs] : kNames) {
    if (ours == kv_dtype) return theirs;
  }
  return {};
}

/// The last number in a tensor's name.
std::optional<std::uint32_t> layer_number(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  std::uint32_t number = 0;
  const auto [at, status] = std::from_chars(name.data() + begin, name.data() + end, number);
  if (begin == end || status != std::errc{}) return std::nullopt;
  return number;
}

/// "[token,2,8,128]" -> {2, 8, 128}; empty where the text has another form.
std::vector<std::uint64_t> token_shape(std::string_view element_order) {
  constexpr std::string_view kStart = "[token,";
  if (!element_order.starts_with(kStart) || !element_order.ends_with(']')) return {};
  std::string_view rest = element_order.substr(kStart.size());
  std::vector<std::uint64_t> shape;
  while (!rest.empty() && shape.size() < 7) {
    std::uint64_t n = 0;
    const auto [at, status] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (status != std::errc{} || n == 0 || n > (1U << 24)) return {};
    shape.push_back(n);
    rest.remove_prefix(static_cast<std::size_t>(at - rest.data()));
    if (rest == "]") return shape;
    if (!rest.starts_with(',')) return {};
    rest.remove_prefix(1);
  }
  return {};
}

}  // namespace

Result<std::vector<std::size_t>> layers_of(const SafetensorsHead& head, const NamespaceSpec& spec,
                                           std::uint64_t tokens) {
  if (head.tensors.size() != spec.layers) {
    return bad(
        fmt::format("the file has {} tensors, the namespace {} layers: one tensor a layer is "
                    "expected",
                    head.tensors.size(), spec.layers));
  }
  const std::string_view dtype = safetensors_dtype(spec.kv_dtype);
  constexpr std::size_t kUnset = SIZE_MAX;
  std::vector<std::size_t> layers(spec.layers, kUnset);
  for (std::size_t i = 0; i < head.tensors.size(); ++i) {
    const Tensor& tensor = head.tensors[i];
    const auto layer = layer_number(tensor.name);
    if (!layer || *layer >= spec.layers || layers[*layer] != kUnset) {
      return bad(fmt::format("its last number is no layer of 0 to {}, or another tensor has it too",
                             spec.layers - 1),
                 tensor.name);
    }
    if (tensor.shape.empty() || tensor.shape[0] != tokens) {
      return bad(fmt::format("its first dimension is {}, but {} token ids were given",
                             tensor.shape.empty() ? 0 : tensor.shape[0], tokens),
                 tensor.name);
    }
    if (!dtype.empty() && dtype != tensor.dtype) {
      return bad(fmt::format("its dtype is {}, the namespace says kv_dtype {}", tensor.dtype,
                             spec.kv_dtype),
                 tensor.name);
    }
    const std::uint64_t per_token = tokens == 0 ? 0 : tensor.size_bytes() / tokens;
    if (per_token != spec.layer_bytes_per_token(*layer)) {
      return bad(fmt::format("it has {} bytes a token, the namespace says {}", per_token,
                             spec.layer_bytes_per_token(*layer)),
                 tensor.name);
    }
    layers[*layer] = i;
  }
  return layers;
}

KvFilePlan plan_kv_file(const NamespaceSpec& spec, std::uint64_t tokens) {
  KvFilePlan plan;
  plan.order.resize(spec.layers);
  std::iota(plan.order.begin(), plan.order.end(), 0U);
  const auto name = [](std::uint32_t layer) { return fmt::format("layer.{}", layer); };
  std::ranges::sort(plan.order, {}, name);
  const std::string_view dtype = safetensors_dtype(spec.kv_dtype);
  const std::vector<std::uint64_t> per_token = token_shape(spec.element_order);
  const std::uint64_t elements =
      std::accumulate(per_token.begin(), per_token.end(), std::uint64_t{1}, std::multiplies{});
  for (const std::uint32_t layer : plan.order) {
    const std::uint64_t bytes = spec.layer_bytes_per_token(layer);
    Tensor tensor{.name = name(layer),
                  .dtype = "U8",
                  .shape = {tokens, bytes},
                  .begin = plan.data_bytes,
                  .end = plan.data_bytes + tokens * bytes};
    if (!dtype.empty() && !per_token.empty() && elements * dtype_bytes(dtype) == bytes) {
      tensor.dtype = dtype;
      tensor.shape = {tokens};
      tensor.shape.insert(tensor.shape.end(), per_token.begin(), per_token.end());
    }
    plan.data_bytes = tensor.end;
    plan.tensors.push_back(std::move(tensor));
  }
  return plan;
}

}  // namespace objectcache::cli
