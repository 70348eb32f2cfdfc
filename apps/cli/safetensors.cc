#include "cli/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace objectcache::cli {
namespace {

constexpr std::size_t kDimensionsMax = 8;
constexpr std::size_t kNameBytesMax = 1024;

/// Accepts exactly {name: {"dtype": text, "shape": [n...], "data_offsets": [n, n]}, ...,
/// "__metadata__": {text: text}}, and remembers why it stopped. Being a SAX handler, it never
/// builds a tree of foreign depth or size, and sees repeated keys.
class HeadReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Tensor> tensors;
  std::string problem;

  bool null() override { return stop("null is not allowed"); }
  bool boolean(bool) override { return stop("a boolean is not allowed"); }
  bool number_integer(number_integer_t) override {
    return stop("a negative number is not allowed");
  }
  bool number_float(number_float_t, const string_t&) override {
    return stop("a fraction is not allowed");
  }
  bool binary(binary_t&) override { return stop("binary data are not allowed"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      if (tensor_.shape.size() == kDimensionsMax) return stop("more than 8 dimensions");
      tensor_.shape.push_back(value);
      return true;
    }
    if (place_ == Place::kOffsets && offsets_ < 2) {
      (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
      return true;
    }
    return stop("a number is not allowed here");
  }
  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ == Place::kTensor && field_ == "dtype") {
      tensor_.dtype = value;
      return true;
    }
    return stop("a text is not allowed here");
  }
  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kOutside:
        place_ = Place::kFile;
        return true;
      case Place::kFile:
        place_ = field_ == "__metadata__" ? Place::kMetadata : Place::kTensor;
        inner_.clear();
        offsets_ = 0;
        if (place_ == Place::kTensor) {
          if (tensors.size() == kTensorsMax) return stop("more than 16384 tensors");
          tensor_ = Tensor{.name = field_, .dtype = {}, .shape = {}, .begin = 0, .end = 0};
        }
        return true;
      default:
        return stop("an object is not allowed here");
    }
  }
  bool key(string_t& name) override {
    if (name.size() > kNameBytesMax) return stop("a name is longer than 1024 bytes");
    auto& seen = place_ == Place::kFile ? outer_ : inner_;
    if (!seen.insert(name).second) return stop(fmt::format("'{}' appears twice", name));
    if (place_ == Place::kTensor && name != "dtype" && name != "shape" && name != "data_offsets") {
      return stop(fmt::format("tensor '{}' has an unknown field '{}'", tensor_.name, name));
    }
    field_ = name;
    return true;
  }
  bool end_object() override {
    if (place_ == Place::kTensor) {
      if (inner_.size() != 3 || offsets_ != 2) {
        return stop(
            fmt::format("tensor '{}' lacks dtype, shape or two data_offsets", tensor_.name));
      }
      tensors.push_back(std::move(tensor_));
    }
    place_ = place_ == Place::kFile ? Place::kDone : Place::kFile;
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && field_ == "shape") {
      place_ = Place::kShape;
    } else if (place_ == Place::kTensor && field_ == "data_offsets") {
      place_ = Place::kOffsets;
    } else {
      return stop("an array is not allowed here");
    }
    return true;
  }
  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    return stop(fmt::format("not JSON at byte {}", at));
  }

 private:
  enum class Place { kOutside, kFile, kMetadata, kTensor, kShape, kOffsets, kDone };

  bool stop(std::string why) {
    if (problem.empty()) problem = std::move(why);
    return false;
  }

  Place place_ = Place::kOutside;
  std::string field_;
  Tensor tensor_;
  int offsets_ = 0;
  std::set<std::string> outer_;
  std::set<std::string> inner_;
};

std::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message), "read safetensors");
}

/// Elements times element size, or empty where that overflows 64 bits.
std::optional<std::uint64_t> expected_bytes(const Tensor& tensor) {
  std::uint64_t bytes = dtype_bytes(tensor.dtype);
  for (const std::uint64_t n : tensor.shape) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) return std::nullopt;
  }
  return bytes;
}

Result<void> check_tensors(const std::vector<Tensor>& tensors, std::uint64_t data_bytes) {
  std::uint64_t next = 0;
  for (const Tensor& tensor : tensors) {
    if (dtype_bytes(tensor.dtype) == 0) {
      return bad(fmt::format("tensor '{}' has the unknown dtype '{}'", tensor.name, tensor.dtype));
    }
    if (tensor.end < tensor.begin || tensor.end > data_bytes) {
      return bad(
          fmt::format("tensor '{}' spans bytes {} to {}, but the file holds {} bytes of data",
                      tensor.name, tensor.begin, tensor.end, data_bytes));
    }
    if (expected_bytes(tensor) != tensor.size_bytes()) {
      return bad(fmt::format("tensor '{}' has {} bytes, which its shape and dtype do not give",
                             tensor.name, tensor.size_bytes()));
    }
    if (tensor.begin != next) {
      return bad(
          fmt::format("tensor '{}' begins at byte {}, the one before ends at {}: tensors "
                      "must neither overlap nor leave holes",
                      tensor.name, tensor.begin, next));
    }
    next = tensor.end;
  }
  if (next != data_bytes) {
    return bad(
        fmt::format("the tensors end at byte {}, the file holds {} bytes of data: it is "
                    "truncated or has foreign bytes at its end",
                    next, data_bytes));
  }
  return {};
}

}  // namespace

std::uint64_t dtype_bytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, std::uint64_t> kSizes[] = {
      {"F64", 8},     {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"F8_E8M0", 1}, {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},      {"U64", 8},
      {"U32", 4},     {"U16", 2}, {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, size] : kSizes) {
    if (name == dtype) return size;
  }
  return 0;
}

Result<std::uint64_t> safetensors_head_bytes(std::span<const std::byte, 8> first,
                                             std::uint64_t file_bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, first.data(), 8);
  static_assert(std::endian::native == std::endian::little);
  if (length > kSafetensorsHeadBytesMax || file_bytes < 8 || length > file_bytes - 8) {
    return bad(fmt::format("the head claims {} bytes; the file has {} and {} are allowed", length,
                           file_bytes, kSafetensorsHeadBytesMax));
  }
  return length + 8;
}

Result<SafetensorsHead> parse_safetensors_head(std::span<const std::byte> head,
                                               std::uint64_t file_bytes) {
  if (head.size() < 8 || file_bytes < head.size()) return bad("the file is shorter than its head");
  const auto* text = reinterpret_cast<const char*>(head.data()) + 8;
  HeadReader reader;
  if (!nlohmann::json::sax_parse(text, text + (head.size() - 8), &reader)) {
    return bad(reader.problem.empty() ? "the head is not JSON" : reader.problem);
  }
  std::ranges::sort(reader.tensors, {}, [](const Tensor& t) { return std::pair{t.begin, t.end}; });
  if (auto ok = check_tensors(reader.tensors, file_bytes - head.size()); !ok) {
    return std::unexpected(ok.error());
  }
  return SafetensorsHead{.tensors = std::move(reader.tensors), .data_offset = head.size()};
}

std::string make_safetensors_head(const std::vector<Tensor>& tensors) {
  std::string json = "{";
  for (const Tensor& tensor : tensors) {
    if (json.size() > 1) json += ',';
    json += fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", tensor.name,
                        tensor.dtype, fmt::join(tensor.shape, ","), tensor.begin, tensor.end);
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  const std::uint64_t length = json.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + json;
}

}  // namespace objectcache::cli
