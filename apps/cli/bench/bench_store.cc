#include "cli/bench/bench_store.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <system_error>
#include <utility>

#include "base/blocking.h"
#include "base/url.h"
#include "store/open_store.h"

namespace objectcache::cli {
namespace {

constexpr std::size_t kPutsAtOnce = 4;
constexpr std::chrono::seconds kPatience{120};

/// Keeps some puts running until all are done or one fails.
class PutAll {
 public:
  PutAll(store::ObjectStore& store, EventLoop& loop, std::vector<store::PutRequest> requests)
      : store_(store), loop_(loop), requests_(std::move(requests)) {}

  [[nodiscard]] Result<void> run() {
    if (requests_.empty()) return {};
    loop_.post([this] {
      for (std::size_t i = 0; i < kPutsAtOnce; ++i) begin();
    });
    done_.get_future().wait();
    if (error_) return std::unexpected(std::move(*error_));
    return {};
  }

 private:
  void begin() {
    if (next_ == requests_.size() || error_) return;
    ++running_;
    store_.put(loop_, std::move(requests_[next_++]), [this](Result<store::PutAnswer> answer) {
      if (!answer) error_ = std::move(answer.error());
      begin();
      if (--running_ == 0) done_.set_value();
    });
  }

  store::ObjectStore& store_;
  EventLoop& loop_;
  std::vector<store::PutRequest> requests_;
  std::promise<void> done_;
  std::size_t next_ = 0;
  std::size_t running_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::create() {
  std::error_code error;
  std::string text =
      (std::filesystem::temp_directory_path(error) / "objectcache-bench.XXXXXX").string();
  if (::mkdtemp(text.data()) == nullptr) {
    return fail(ErrorCode::kPermissionDenied, std::strerror(errno), "make a folder", text);
  }
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(text));
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

Result<TestServer> start_test_server(const TestServerOptions& options) {
  ChildCommand command{.program = program_beside("fake_s3_server"),
                       .arguments = {"--latency-ms", fmt::format("{}", options.latency_ms)}};
  if (options.lenient) command.arguments.emplace_back("--lenient");
  if (!options.tls_folder.empty()) {
    command.arguments.insert(command.arguments.end(), {"--tls-dir", options.tls_folder});
  }
  auto child = ServerChild::start(command, options.tls_folder.empty() ? "S3_REGION" : "S3_CA",
                                  std::chrono::seconds(30));
  if (!child) {
    Error error = std::move(child.error());
    error.message += "; build the tests' server (fake_s3_server) or name a store with --url";
    return std::unexpected(std::move(error));
  }
  const auto said = [&](const char* name) {
    const auto it = child->said().find(name);
    return it == child->said().end() ? std::string() : it->second;
  };
  std::string url = fmt::format("s3://{}/bench?path_style=true&region={}&endpoint={}",
                                said("S3_BUCKET"), said("S3_REGION"), said("S3_ENDPOINT"));
  if (!options.tls_folder.empty()) url += "&ca=" + percent_encode(said("S3_CA"));
  std::map<std::string, std::string> credentials{{"AWS_ACCESS_KEY_ID", said("S3_ACCESS_KEY")},
                                                 {"AWS_SECRET_ACCESS_KEY", said("S3_SECRET_KEY")}};
  return TestServer{std::move(*child), std::move(url), std::move(credentials)};
}

Environment with_variables(Environment environment,
                           const std::map<std::string, std::string>& more) {
  for (const auto& [name, value] : more) environment.variables[name] = value;
  return environment;
}

Result<BenchStore> BenchStore::open(const std::string& url, const Environment& environment) {
  BenchStore out;
  auto loop = http::Reactor::start();
  if (!loop) return std::unexpected(std::move(loop.error()));
  out.loop_ = std::move(*loop);
  auto store = store::open_store(url, environment);
  if (!store) return std::unexpected(std::move(store.error()));
  out.store_ = std::move(*store);
  return out;
}

BenchStore::~BenchStore() {
  if (store_) static_cast<void>(remove_all());
}

Result<void> BenchStore::put(std::uint32_t count,
                             const std::function<Object(std::uint32_t)>& make) {
  std::vector<store::PutRequest> requests;
  for (std::uint32_t i = 0; i < count; ++i) {
    Object object = make(i);
    keys_.push_back({object.key});
    requests.push_back({.key = {std::move(object.key)},
                        .body = std::move(object.body),
                        .mode = store::PutMode::kReplace,
                        .deadline = loop_->now() + kPatience});
  }
  return PutAll(*store_, *loop_, std::move(requests)).run();
}

Result<void> BenchStore::remove_all() {
  constexpr std::size_t kKeysACall = 1000;
  while (!keys_.empty()) {
    const std::size_t count = std::min(keys_.size(), kKeysACall);
    std::vector<store::ObjectKey> some(keys_.end() - static_cast<std::ptrdiff_t>(count),
                                       keys_.end());
    keys_.resize(keys_.size() - count);
    const TimePoint deadline = loop_->now() + kPatience;
    auto removed = run_blocking<std::vector<store::RemoveFailure>>(
        *loop_, deadline, [&, some = std::move(some)](auto done) mutable {
          return store_->remove_many(*loop_, std::move(some), deadline, std::move(done));
        });
    if (!removed) return std::unexpected(std::move(removed.error()));
    if (!removed->empty()) return std::unexpected(std::move(removed->front().error));
  }
  return {};
}

}  // namespace objectcache::cli
