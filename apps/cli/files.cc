#include "cli/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fstream>

namespace objectcache::cli {
namespace {

constexpr std::uint64_t kTokensFileBytesMax = 256U << 20;
constexpr std::size_t kTokensMax = 16U << 20;

std::unexpected<Error> os_error(std::string action, const std::filesystem::path& path, int number) {
  const bool denied = number == EACCES || number == EPERM || number == EROFS;
  const bool full = number == ENOSPC || number == EDQUOT;
  return fail(denied ? ErrorCode::kPermissionDenied
                     : (full ? ErrorCode::kOutOfSpace : ErrorCode::kInvalidArgument),
              std::strerror(number), std::move(action), path.string());
}

bool is_separator(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ','; }

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  std::error_code status;
  const std::uint64_t size = std::filesystem::file_size(path, status);
  if (status) return os_error("read", path, status.value());
  if (size > bytes_max) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the file has {} bytes, at most {} are allowed", size, bytes_max),
                "read", path.string());
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (!in) return os_error("read", path, errno == 0 ? EIO : errno);
  return text;
}

Result<NamespaceSpec> read_namespace_file(const std::filesystem::path& path) {
  auto text = read_file(path, NamespaceSpec::kJsonBytesMax);
  if (!text) return std::unexpected(std::move(text.error()));
  auto spec = parse_namespace(*text);
  if (!spec) {
    spec.error().message = fmt::format("{} (in {})", spec.error().message, path.string());
  }
  return spec;
}

Result<std::vector<TokenId>> parse_tokens(std::string_view text) {
  const auto is_space = [](char c) { return is_separator(c) && c != ','; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (!text.empty() && text.front() == '[') {
    if (text.size() < 2 || text.back() != ']') {
      return fail(ErrorCode::kInvalidArgument, "the list of tokens lacks its ']'", "read tokens");
    }
    text = text.substr(1, text.size() - 2);
  }
  std::vector<TokenId> tokens;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (is_separator(*at)) {
      ++at;
      continue;
    }
    TokenId token = 0;
    const auto [next, status] = std::from_chars(at, end, token);
    if (status != std::errc{} || (next != end && !is_separator(*next))) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("token {} (at byte {}) is not a whole number below 2^32",
                              tokens.size(), at - text.data()),
                  "read tokens");
    }
    if (tokens.size() == kTokensMax) {
      return fail(ErrorCode::kInvalidArgument, fmt::format("more than {} tokens", kTokensMax),
                  "read tokens");
    }
    tokens.push_back(token);
    at = next;
  }
  return tokens;
}

Result<std::vector<TokenId>> read_tokens_file(const std::filesystem::path& path) {
  auto text = read_file(path, kTokensFileBytesMax);
  if (!text) return std::unexpected(std::move(text.error()));
  auto tokens = parse_tokens(*text);
  if (!tokens) tokens.error().key = path.string();
  return tokens;
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return os_error("open", path, errno);
  struct stat status{};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) {
    ::close(fd);
    return fail(ErrorCode::kInvalidArgument, "not a regular file with content", "open",
                path.string());
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int number = errno;
  ::close(fd);
  if (data == MAP_FAILED) return os_error("map", path, number);
  MappedFile file;
  file.data_ = static_cast<std::byte*>(data);
  file.size_ = size;
  return file;
}

Result<MappedFile> MappedFile::create(const std::filesystem::path& path, std::uint64_t size_bytes) {
  MappedFile file;
  file.final_ = path;
  file.temporary_ = path.string() + fmt::format(".part{}", getpid());
  const int fd = ::open(file.temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    file.temporary_.clear();
    return os_error("create", path, errno);
  }
  // Reserving the blocks now turns a full disk into an error instead of a SIGBUS later.
  const int number = posix_fallocate(fd, 0, static_cast<off_t>(size_bytes));
  void* data = number == 0 ? mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                           : MAP_FAILED;
  const int map_number = errno;
  ::close(fd);
  if (data == MAP_FAILED) return os_error("create", path, number != 0 ? number : map_number);
  file.data_ = static_cast<std::byte*>(data);
  file.size_ = size_bytes;
  return file;
}

Result<void> MappedFile::publish() {
  if (rename(temporary_.c_str(), final_.c_str()) != 0) return os_error("rename", final_, errno);
  temporary_.clear();
  return {};
}

void MappedFile::close() noexcept {
  if (data_ != nullptr) munmap(data_, size_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
  data_ = nullptr;
  size_ = 0;
  temporary_.clear();
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    close();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    final_ = std::move(other.final_);
    temporary_ = std::exchange(other.temporary_, {});
  }
  return *this;
}

MappedFile::~MappedFile() { close(); }

}  // namespace objectcache::cli
