// Heads of safetensors files: any bytes are either refused or give tensors that lie inside the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "cli/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace objectcache::cli;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (bytes.size() < 8) return 0;
  // The file may be longer than what the fuzzer holds of it.
  const std::uint64_t file_bytes = bytes.size() + 64;
  const auto head_bytes = safetensors_head_bytes(bytes.first<8>(), file_bytes);
  if (!head_bytes || *head_bytes > bytes.size()) return 0;
  const auto head = parse_safetensors_head(bytes.first(*head_bytes), file_bytes);
  if (!head) return 0;
  std::uint64_t next = 0;
  for (const Tensor& tensor : head->tensors) {
    if (tensor.begin != next || tensor.end < tensor.begin) std::abort();
    next = tensor.end;
  }
  if (head->data_offset + next != file_bytes) std::abort();
  return 0;
}
