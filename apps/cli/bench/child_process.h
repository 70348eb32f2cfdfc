#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "objectcache/error.h"

namespace objectcache::cli {

/// A program to start: its path, its arguments, and what is added to this process's environment.
struct ChildCommand {
  std::string program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> variables{};
};

/// Runs a program to its end and gives its standard output; its standard error is ours.
/// kUnsupported: there is no such program. kUnavailable: it failed, or ran into `timeout` and was
/// killed; the message has the end of its output.
[[nodiscard]] Result<std::string> run_child(const ChildCommand& command,
                                            std::chrono::seconds timeout);

/// A program that serves until it is told to end: it is ended by SIGTERM, and dies with us.
///
/// Threads: one.
class ServerChild {
 public:
  /// Starts it and reads lines NAME=value from its output until one is called `last`.
  [[nodiscard]] static Result<ServerChild> start(const ChildCommand& command, std::string_view last,
                                                 std::chrono::seconds timeout);
  ServerChild(ServerChild&& other) noexcept;
  ServerChild& operator=(ServerChild&&) = delete;
  ServerChild(const ServerChild&) = delete;
  ServerChild& operator=(const ServerChild&) = delete;
  ~ServerChild();

  [[nodiscard]] const std::map<std::string, std::string>& said() const { return said_; }

 private:
  ServerChild(pid_t pid, int output) : pid_(pid), output_(output) {}

  pid_t pid_ = -1;
  int output_ = -1;
  std::map<std::string, std::string> said_;
};

/// Where this program lies; the programs that go with it lie in the same folder.
[[nodiscard]] std::string own_program();
[[nodiscard]] std::string program_beside(std::string_view name);
/// True for a file that may be run.
[[nodiscard]] bool is_program(const std::string& path);

}  // namespace objectcache::cli
