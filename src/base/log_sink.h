#pragma once

#include <cstdint>
#include <string_view>

namespace objectcache {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

/// Where the library's messages go: the program decides, the library never prints. Messages hold
/// no secrets and no newline.
///
/// Threads: any; implementations lock.
class LogSink {
 public:
  virtual ~LogSink() = default;
  /// `room` is the part that speaks: "store/s3", "stream"...
  virtual void write(LogLevel level, std::string_view room, std::string_view message) = 0;
  /// False: a message of this level would be dropped, so that no one need compose it.
  [[nodiscard]] virtual bool wants(LogLevel level) const = 0;
};

/// One room's way to a sink. Cheap to copy; without a sink it is silent, which is the default.
class Log {
 public:
  Log() = default;
  /// `sink` (may be null) and the text behind `room` must outlive this and its copies.
  Log(LogSink* sink, std::string_view room) : sink_(sink), room_(room) {}

  [[nodiscard]] bool wants(LogLevel level) const { return sink_ != nullptr && sink_->wants(level); }
  void write(LogLevel level, std::string_view message) const {
    if (wants(level)) sink_->write(level, room_, message);
  }
  void debug(std::string_view message) const { write(LogLevel::kDebug, message); }
  void info(std::string_view message) const { write(LogLevel::kInfo, message); }
  void warning(std::string_view message) const { write(LogLevel::kWarning, message); }
  void error(std::string_view message) const { write(LogLevel::kError, message); }

 private:
  LogSink* sink_ = nullptr;
  std::string_view room_;
};

}  // namespace objectcache
