#include "s3/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace objectcache::s3 {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
constexpr std::string_view kSpace = " \t\r\f\v";

enum class FileKind : std::uint8_t { kCredentials, kConfig };

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// A comment inside a line starts with white space and '#' or ';'.
std::string_view without_comment(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if ((text[i] == ' ' || text[i] == '\t') && (text[i + 1] == '#' || text[i + 1] == ';')) {
      return text.substr(0, i);
    }
  }
  return text;
}

// Name of the profile that a section header means; empty: some other kind of section.
std::string_view profile_name(std::string_view section, FileKind kind) {
  section = trimmed(section);
  static constexpr std::string_view kWord = "profile";
  const bool prefixed = section.starts_with(kWord) && section.size() > kWord.size() &&
                        kSpace.find(section[kWord.size()]) != kSpace.npos;
  if (kind == FileKind::kConfig && prefixed) return trimmed(section.substr(kWord.size()));
  if (kind == FileKind::kConfig && section != "default") return {};
  return section;
}

using Settings = std::map<std::string, std::string, std::less<>>;

// Collects the settings of one profile. A nested setting ("s3 =" and indented lines) is called
// "s3.name". Lines are looked at one after the other, so the work is linear.
class FileReader {
 public:
  FileReader(FileKind kind, std::string_view profile) : kind_(kind), profile_(profile) {}

  Result<void> read(std::string_view text) {
    if (text.size() > kFileBytesMax) return bad("is larger than 1 MiB");
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_number_;
      if (auto ok = read_line(text.substr(0, end)); !ok) return ok;
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return {};
  }
  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  Result<void> read_line(std::string_view line) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') return {};
    if (text.front() == '[') return read_section(text);
    const std::size_t equals = text.find('=');
    if (equals == text.npos) return bad("has no '='");
    const std::string_view name = trimmed(text.substr(0, equals));
    if (name.empty()) return bad("has no name before '='");
    const std::string_view value = trimmed(without_comment(text.substr(equals + 1)));
    if (!in_section_) return bad("stands before the first [section]");
    const bool nested = kSpace.find(line.front()) != kSpace.npos && !parent_.empty();
    if (!nested) parent_ = value.empty() ? std::string(name) : std::string();
    if (!in_profile_) return {};
    settings_[nested ? fmt::format("{}.{}", parent_, name) : std::string(name)] = value;
    return {};
  }
  Result<void> read_section(std::string_view text) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return bad("has a '[' without ']'");
    const std::string_view behind = trimmed(text.substr(end + 1));
    if (!behind.empty() && behind.front() != '#' && behind.front() != ';') {
      return bad("has text behind the ']'");
    }
    in_section_ = true;
    parent_.clear();
    in_profile_ = profile_name(text.substr(1, end - 1), kind_) == profile_;
    found_ = found_ || in_profile_;
    return {};
  }
  std::unexpected<Error> bad(std::string_view what) const {
    const std::string_view file = kind_ == FileKind::kConfig ? "config file" : "credentials file";
    return fail(ErrorCode::kInvalidArgument, fmt::format("line {} {}", line_number_, what),
                fmt::format("read {}", file), std::string(profile_));
  }

  FileKind kind_;
  std::string_view profile_;
  Settings settings_;
  std::string parent_;
  std::size_t line_number_ = 0;
  bool in_section_ = false;
  bool in_profile_ = false;
  bool found_ = false;
};

std::optional<std::string> get(const Settings& settings, std::string_view name) {
  const auto it = settings.find(name);
  if (it == settings.end() || it->second.empty()) return std::nullopt;
  return it->second;
}

// The three belong together: a token of one file never goes with a key of the other.
std::optional<Credentials> credentials_of(const Settings& settings) {
  auto id = get(settings, "aws_access_key_id");
  auto secret = get(settings, "aws_secret_access_key");
  if (!id || !secret) return std::nullopt;
  return Credentials{.access_key_id = std::move(*id),
                     .secret_access_key = Secret(std::move(*secret)),
                     .session_token = Secret(get(settings, "aws_session_token").value_or("")),
                     .expires_at = {}};
}

}  // namespace

Result<Profile> read_profile(std::string_view credentials_text, std::string_view config_text,
                             std::string_view profile) {
  FileReader credentials(FileKind::kCredentials, profile);
  if (auto ok = credentials.read(credentials_text); !ok) return std::unexpected(ok.error());
  FileReader config(FileKind::kConfig, profile);
  if (auto ok = config.read(config_text); !ok) return std::unexpected(ok.error());
  if (profile.empty() || (!credentials.found() && !config.found())) {
    return fail(ErrorCode::kNotFound,
                "no such profile in the credentials file or the config file; check its name",
                "read profile", std::string(profile));
  }
  const auto first_of = [&](std::string_view name) {
    auto value = get(credentials.settings(), name);
    return value ? value : get(config.settings(), name);
  };
  Profile out;
  out.credentials = credentials_of(credentials.settings());
  if (!out.credentials) out.credentials = credentials_of(config.settings());
  out.region = first_of("region");
  out.endpoint_url = first_of("s3.endpoint_url");
  if (!out.endpoint_url) out.endpoint_url = first_of("endpoint_url");
  out.addressing_style = first_of("s3.addressing_style");
  out.ca_bundle = first_of("ca_bundle");
  return out;
}

}  // namespace objectcache::s3
