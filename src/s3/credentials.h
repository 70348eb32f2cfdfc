#pragma once

#include <chrono>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "objectcache/error.h"
#include "s3/http_date.h"

namespace objectcache::s3 {

/// A text that must never reach a log or an error. It has no conversion to text: whoever needs the
/// value says reveal(), which is easy to search for.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  [[nodiscard]] const std::string& reveal() const { return value_; }
  [[nodiscard]] bool empty() const { return value_.empty(); }
  friend bool operator==(const Secret&, const Secret&) = default;
  /// GoogleTest prints "<secret>" instead of the bytes.
  friend void PrintTo(const Secret& secret, std::ostream* out);

 private:
  std::string value_;
};

/// What signs a request. The access key id is a name and may be shown; the rest may not.
struct Credentials {
  std::string access_key_id;
  Secret secret_access_key;
  Secret session_token;                ///< Empty for long-lived keys.
  std::optional<WallTime> expires_at;  ///< Empty: never.

  friend bool operator==(const Credentials&, const Credentials&) = default;
};

/// Where a signer gets its credentials from. current() answers at once from what is known;
/// fetching new ones is the business of the implementation's owner, who asks needs_refresh() now
/// and then and does the I/O elsewhere.
///
/// Threads: any.
class CredentialProvider {
 public:
  virtual ~CredentialProvider() = default;
  /// Never null. Credentials past their end are an error (kPermissionDenied), none at all, too.
  [[nodiscard]] virtual Result<std::shared_ptr<const Credentials>> current(WallTime now) const = 0;
  /// True from some minutes before the end on, and while there are none.
  [[nodiscard]] virtual bool needs_refresh(WallTime now) const = 0;
};

/// Credentials given once, by an option, the environment or a file.
class StaticCredentials final : public CredentialProvider {
 public:
  explicit StaticCredentials(Credentials credentials)
      : credentials_(std::make_shared<const Credentials>(std::move(credentials))) {}
  [[nodiscard]] Result<std::shared_ptr<const Credentials>> current(WallTime now) const override;
  [[nodiscard]] bool needs_refresh(WallTime /*now*/) const override { return false; }

 private:
  std::shared_ptr<const Credentials> credentials_;
};

/// Credentials that someone else keeps fresh by replace(): the metadata services.
class RefreshedCredentials final : public CredentialProvider {
 public:
  struct Options {
    std::string source;  ///< For messages: "instance metadata".
    std::chrono::seconds refresh_before_end = std::chrono::minutes(5);
  };
  explicit RefreshedCredentials(Options options) : options_(std::move(options)) {}

  void replace(Credentials credentials);
  /// The latest attempt failed: current() shows why, once what it has is unusable.
  void note_failure(Error error);
  [[nodiscard]] Result<std::shared_ptr<const Credentials>> current(WallTime now) const override;
  [[nodiscard]] bool needs_refresh(WallTime now) const override;

 private:
  const Options options_;
  mutable std::mutex mutex_;  // guards the two below; held for a pointer copy only
  std::shared_ptr<const Credentials> credentials_;  // null: none yet
  std::optional<Error> failure_;
};

/// Says what is wrong with the form of a key pair (empty, spaces, line ends), or nothing. Shows no
/// part of the secret.
[[nodiscard]] std::optional<std::string> credentials_problem(const Credentials& credentials);

}  // namespace objectcache::s3
