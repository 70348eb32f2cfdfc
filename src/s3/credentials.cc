#include "s3/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace objectcache::s3 {
namespace {

std::unexpected<Error> expired(const Credentials& credentials, std::string_view source) {
  return fail(ErrorCode::kPermissionDenied,
              fmt::format("the credentials from {} ended at {}; get new ones", source,
                          format_iso8601(*credentials.expires_at)),
              "sign", credentials.access_key_id);
}

bool has_ended(const Credentials& credentials, WallTime now) {
  return credentials.expires_at && now >= *credentials.expires_at;
}

bool is_printable_token(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

void PrintTo(const Secret& secret, std::ostream* out) {
  *out << (secret.empty() ? "<no secret>" : "<secret>");
}

Result<std::shared_ptr<const Credentials>> StaticCredentials::current(WallTime now) const {
  if (has_ended(*credentials_, now)) return expired(*credentials_, "the configuration");
  return credentials_;
}

void RefreshedCredentials::replace(Credentials credentials) {
  auto next = std::make_shared<const Credentials>(std::move(credentials));
  const std::lock_guard lock(mutex_);
  credentials_ = std::move(next);
  failure_.reset();
}

void RefreshedCredentials::note_failure(Error error) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(error);
}

Result<std::shared_ptr<const Credentials>> RefreshedCredentials::current(WallTime now) const {
  const std::lock_guard lock(mutex_);
  if (credentials_ && !has_ended(*credentials_, now)) return credentials_;
  if (failure_) return std::unexpected(*failure_);
  if (credentials_) return expired(*credentials_, options_.source);
  return fail(ErrorCode::kPermissionDenied,
              fmt::format("no credentials from {} yet", options_.source), "sign");
}

bool RefreshedCredentials::needs_refresh(WallTime now) const {
  const std::lock_guard lock(mutex_);
  if (!credentials_) return true;
  const auto& end = credentials_->expires_at;
  return end && now >= *end - options_.refresh_before_end;
}

std::optional<std::string> credentials_problem(const Credentials& credentials) {
  if (credentials.access_key_id.empty()) return "the access key id is empty";
  if (credentials.secret_access_key.empty()) return "the secret access key is empty";
  if (!is_printable_token(credentials.access_key_id) ||
      credentials.access_key_id.find_first_of("/,") != std::string::npos) {
    return "the access key id has a space, a slash, a comma or a character that is not ASCII";
  }
  if (!is_printable_token(credentials.secret_access_key.reveal())) {
    return "the secret access key has a space, a line end or a character that is not ASCII";
  }
  if (!is_printable_token(credentials.session_token.reveal())) {
    return "the session token has a space, a line end or a character that is not ASCII";
  }
  return std::nullopt;
}

}  // namespace objectcache::s3
