#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "objectcache/error.h"

namespace objectcache::cli {

/// What the program's exit status means; docs/cli.md has the same table.
enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,       ///< Anything without a number of its own.
  kUsage = 2,        ///< Wrong options, arguments or input files.
  kMiss = 3,         ///< Nothing (or less than --require) of the prefix is stored.
  kBadObjects = 4,   ///< verify, doctor or a read found something wrong.
  kUnavailable = 5,  ///< The store cannot be reached, is overloaded, or the deadline passed.
  kDenied = 6,       ///< The store refuses these credentials or rights.
};
[[nodiscard]] ExitCode exit_code_of(ErrorCode code) noexcept;

/// Where commands print: text for people on stdout, or one JSON document; progress and errors on
/// stderr. Threads: one.
class Console {
 public:
  struct Options {
    bool json = false;
    bool quiet = false;  ///< No progress.
  };
  explicit Console(Options options);

  [[nodiscard]] bool json() const { return options_.json; }
  /// A line for people; nothing with --json.
  void line(std::string_view text);
  /// The one document of --json; nothing without.
  void document(const nlohmann::ordered_json& document);
  /// Prints the error (as JSON with --json) and gives the matching exit code.
  ExitCode error(const Error& error);
  /// A bar on stderr if that is a terminal, redrawn at most ten times a second.
  void progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                std::string_view suffix = {});
  /// Removes the bar.
  void progress_end();
  [[nodiscard]] bool colour() const { return colour_; }
  /// Columns of the terminal, 100 where there is none.
  [[nodiscard]] int columns() const;

 private:
  Options options_;
  bool progress_shown_ = false;
  bool terminal_ = false;
  bool colour_ = false;
  std::chrono::steady_clock::time_point progress_at_{};
};

/// "1.50 GiB", "96.0 KiB", "12 B".
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);
/// "812 MB/s"; decimal, as networks count.
[[nodiscard]] std::string human_rate(double bytes_per_second);
/// "1.25 s", "3.40 ms", "12 us".
[[nodiscard]] std::string human_duration(std::chrono::nanoseconds duration);

}  // namespace objectcache::cli
