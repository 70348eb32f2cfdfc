#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/child_process.h"
#include "http/reactor.h"
#include "objectcache/cache.h"
#include "store/object_store.h"

namespace objectcache::cli {

/// A folder that is gone with the object.
class ScratchFolder {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ScratchFolder>> create();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// The tests' S3 server (fake_s3_server) as a child: objects in memory, strict signatures.
struct TestServer {
  ServerChild child;
  std::string url;  ///< s3://bucket/bench?endpoint=...
  /// What clients need to be let in: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
  std::map<std::string, std::string> credentials;
};
struct TestServerOptions {
  double latency_ms = 0;
  std::string tls_folder;  ///< Empty: http.
  bool lenient = false;    ///< Takes headers that it does not know: for clients of other makes.
};
[[nodiscard]] Result<TestServer> start_test_server(const TestServerOptions& options);

/// `environment` with `more` added.
[[nodiscard]] Environment with_variables(Environment environment,
                                         const std::map<std::string, std::string>& more);

/// A store of a bench with a loop to reach it from: puts what the bench reads, and removes it.
///
/// Threads: one. Calls block.
class BenchStore {
 public:
  [[nodiscard]] static Result<BenchStore> open(const std::string& url,
                                               const Environment& environment);
  BenchStore(BenchStore&&) = default;
  BenchStore(const BenchStore&) = delete;
  BenchStore& operator=(const BenchStore&) = delete;
  ~BenchStore();  ///< Removes what was put.

  /// `count` objects, four at a time: `make(i)` gives name and content, which must stay in place
  /// until this returns.
  struct Object {
    std::string key;
    std::vector<ConstSegment> body;
  };
  [[nodiscard]] Result<void> put(std::uint32_t count,
                                 const std::function<Object(std::uint32_t)>& make);
  [[nodiscard]] Result<void> remove_all();

  [[nodiscard]] store::ObjectStore& store() { return *store_; }
  [[nodiscard]] http::Reactor& loop() { return *loop_; }

 private:
  BenchStore() = default;
  std::unique_ptr<http::Reactor> loop_;
  std::unique_ptr<store::ObjectStore> store_;  // Ends before its loop.
  std::vector<store::ObjectKey> keys_;
};

}  // namespace objectcache::cli
