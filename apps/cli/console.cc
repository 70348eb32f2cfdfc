#include "cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace objectcache::cli {

ExitCode exit_code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return ExitCode::kUsage;
    case ErrorCode::kCorrupt:
    case ErrorCode::kIncompatible:
      return ExitCode::kBadObjects;
    case ErrorCode::kUnavailable:
    case ErrorCode::kThrottled:
    case ErrorCode::kDeadlineExceeded:
      return ExitCode::kUnavailable;
    case ErrorCode::kPermissionDenied:
      return ExitCode::kDenied;
    default:
      return ExitCode::kFailed;
  }
}

Console::Console(Options options)
    : options_(options),
      terminal_(isatty(STDERR_FILENO) == 1),
      colour_(isatty(STDOUT_FILENO) == 1) {}

void Console::line(std::string_view text) {
  if (!options_.json) fmt::print("{}\n", text);
}

void Console::document(const nlohmann::ordered_json& document) {
  if (options_.json) {
    fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

ExitCode Console::error(const Error& error) {
  progress_end();
  if (options_.json) {
    const nlohmann::ordered_json out = {{"error",
                                         {{"code", error_code_name(error.code)},
                                          {"action", error.action},
                                          {"key", error.key},
                                          {"message", error.message},
                                          {"http_status", error.http_status},
                                          {"s3_code", error.s3_code},
                                          {"request_id", error.request_id}}}};
    document(out);
  }
  fmt::print(stderr, "objectcache: {}\n", error.to_string());
  return exit_code_of(error.code);
}

int Console::columns() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

void Console::progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                       std::string_view suffix) {
  if (!terminal_ || options_.quiet || options_.json || total == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (progress_shown_ && done < total && now - progress_at_ < std::chrono::milliseconds(100))
    return;
  progress_at_ = now;
  progress_shown_ = true;
  constexpr std::uint64_t kWidth = 30;
  const std::uint64_t filled = std::min(kWidth, done * kWidth / total);
  fmt::print(stderr, "\r\033[K{} [{:=<{}}{:{}}] {}/{} {}", what, "", filled, "", kWidth - filled,
             done, total, suffix);
  std::fflush(stderr);
}

void Console::progress_end() {
  if (progress_shown_) fmt::print(stderr, "\r\033[K");
  progress_shown_ = false;
}

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit]);
}

std::string human_rate(double bytes_per_second) {
  if (bytes_per_second >= 1e9) return fmt::format("{:.2f} GB/s", bytes_per_second / 1e9);
  if (bytes_per_second >= 1e6) return fmt::format("{:.0f} MB/s", bytes_per_second / 1e6);
  return fmt::format("{:.1f} kB/s", bytes_per_second / 1e3);
}

std::string human_duration(std::chrono::nanoseconds duration) {
  const auto ns = static_cast<double>(duration.count());
  if (ns >= 1e9) return fmt::format("{:.2f} s", ns / 1e9);
  if (ns >= 1e6) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.0f} us", ns / 1e3);
}

}  // namespace objectcache::cli
