#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "objectcache/error.h"

namespace objectcache::fake_s3 {

/// PEM files of a certificate authority made for one test, and of a server certificate under it.
struct TlsFiles {
  std::filesystem::path ca_certificate;
  std::filesystem::path server_certificate;
  std::filesystem::path server_key;
};

struct TlsNames {
  std::vector<std::string> dns{"localhost"};
  std::vector<std::string> ip{"127.0.0.1", "::1"};
};

/// Makes both inside `folder`, which is created; files that are there are replaced. Valid from an
/// hour ago for ten days.
[[nodiscard]] Result<TlsFiles> make_tls_files(const std::filesystem::path& folder,
                                              const TlsNames& names = {});

}  // namespace objectcache::fake_s3
