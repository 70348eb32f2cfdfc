#include "cli/bench/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

extern char** environ;  // NOLINT: POSIX's name

namespace objectcache::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kOutputBytesMax = 16U << 20;

struct Started {
  pid_t pid;
  int output;
};

/// Everything that allocates is done before fork(): other threads may hold the heap's lock.
Result<Started> spawn(const ChildCommand& command) {
  if (!is_program(command.program)) {
    return fail(ErrorCode::kUnsupported, "no such program", "start", command.program);
  }
  std::vector<std::string> words{command.program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!command.variables.contains(std::string(text.substr(0, text.find('='))))) {
      variables.emplace_back(text);
    }
  }
  for (const auto& [name, value] : command.variables) variables.push_back(name + "=" + value);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (std::string& text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
  };
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);

  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::kLimitExceeded, std::strerror(errno), "start", command.program);
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(126);
    ::dup2(pipe[1], STDOUT_FILENO);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(pipe[1]);
  if (pid < 0) {
    ::close(pipe[0]);
    return fail(ErrorCode::kLimitExceeded, std::strerror(errno), "start", command.program);
  }
  return Started{pid, pipe[0]};
}

enum class ReadEnd : std::uint8_t { kMore, kClosed, kTimeout, kTooMuch };

/// Appends what comes next.
ReadEnd read_more(int output, Clock::time_point until, std::string& text) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return ReadEnd::kTimeout;
    pollfd wait{.fd = output, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::min<long>(left, 1'000'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return ReadEnd::kTimeout;
    std::array<char, 16384> buffer{};
    const ssize_t got = ::read(output, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return ReadEnd::kClosed;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    return text.size() > kOutputBytesMax ? ReadEnd::kTooMuch : ReadEnd::kMore;
  }
}

int wait_for_exit(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string tail(const std::string& text) {
  return text.substr(text.size() - std::min<std::size_t>(text.size(), 400));
}

}  // namespace

Result<std::string> run_child(const ChildCommand& command, std::chrono::seconds timeout) {
  auto child = spawn(command);
  if (!child) return std::unexpected(std::move(child.error()));
  const Clock::time_point until = Clock::now() + timeout;
  std::string text;
  ReadEnd end = ReadEnd::kMore;
  while (end == ReadEnd::kMore) end = read_more(child->output, until, text);
  ::close(child->output);
  if (end != ReadEnd::kClosed) ::kill(child->pid, SIGKILL);
  const int status = wait_for_exit(child->pid);
  if (end == ReadEnd::kTimeout) {
    return fail(ErrorCode::kUnavailable, fmt::format("not done after {} s", timeout.count()), "run",
                command.program);
  }
  if (end == ReadEnd::kTooMuch) {
    return fail(ErrorCode::kUnavailable, "prints too much", "run", command.program);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(ErrorCode::kUnavailable,
                WIFEXITED(status)
                    ? fmt::format("exit status {}: {}", WEXITSTATUS(status), tail(text))
                    : fmt::format("killed by signal {}", WTERMSIG(status)),
                "run", command.program);
  }
  return text;
}

Result<ServerChild> ServerChild::start(const ChildCommand& command, std::string_view last,
                                       std::chrono::seconds timeout) {
  auto child = spawn(command);
  if (!child) return std::unexpected(std::move(child.error()));
  ServerChild server(child->pid, child->output);
  const Clock::time_point until = Clock::now() + timeout;
  std::string text;
  while (read_more(child->output, until, text) == ReadEnd::kMore) {
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      const std::string line = text.substr(0, end);
      text.erase(0, end + 1);
      const std::size_t equals = line.find('=');
      if (equals == std::string::npos) continue;
      server.said_[line.substr(0, equals)] = line.substr(equals + 1);
      if (std::string_view(line).substr(0, equals) == last) return server;
    }
  }
  return fail(ErrorCode::kUnavailable, fmt::format("it did not come up: {}", tail(text)), "start",
              command.program);
}

ServerChild::ServerChild(ServerChild&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      said_(std::move(other.said_)) {}

ServerChild::~ServerChild() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  wait_for_exit(pid_);
  ::close(output_);
}

std::string own_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::string program_beside(std::string_view name) {
  return (std::filesystem::path(own_program()).parent_path() / name).string();
}

bool is_program(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace objectcache::cli
