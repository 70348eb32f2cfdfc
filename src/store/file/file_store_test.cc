#include "store/file/file_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/thread_event_loop.h"
#include "store/conformance.h"
#include "store/testing/conformance_harness.h"
#include "store/testing/temp_folder.h"

namespace objectcache::store {
namespace {

namespace fs = std::filesystem;

class FileUnderTest final : public StoreUnderTest {
 public:
  explicit FileUnderTest(FileStore::Options options) {
    options.directory = folder_.path() + "/kv";
    if (!options.min_free_bytes) options.min_free_bytes = 0;
    for (auto& store : stores_) {
      auto opened = FileStore::open(options);
      EXPECT_TRUE(opened) << opened.error().to_string();
      store = std::move(*opened);
    }
  }
  [[nodiscard]] ObjectStore& store() override { return *stores_[0]; }
  [[nodiscard]] ObjectStore* another_client() override { return stores_[1].get(); }
  [[nodiscard]] LoopDriver& driver() override { return driver_; }
  [[nodiscard]] std::unique_ptr<LoopDriver> another_driver() override {
    auto thread = std::make_shared<EventLoopThread>();
    auto& loop = thread->loop();
    return std::make_unique<ForeignLoopDriver>(loop, std::move(thread));
  }
  [[nodiscard]] fs::path root() const { return folder_.path() + "/kv"; }

 private:
  TempFolder folder_;
  ThreadLoopDriver driver_;
  std::unique_ptr<FileStore> stores_[2];
};

const bool kPlain = register_conformance("PlainFileStore", [] {
  return std::make_unique<FileUnderTest>(FileStore::Options{.directory = {}});
});
const bool kIsolated = register_conformance("IsolatedFileStore", [] {
  return std::make_unique<FileUnderTest>(
      FileStore::Options{.directory = {}, .isolate = true, .threads = 2, .piece_bytes = 50'000});
});

const bool kDirect = register_conformance("DirectFileStore", [] {
  return std::make_unique<FileUnderTest>(
      FileStore::Options{.directory = {}, .direct = true, .piece_bytes = 64 << 10});
});

/// Helpers of one test on one store.
struct FileFixture {
  explicit FileFixture(FileStore::Options options = {.directory = {}})
      : subject(std::move(options)), h(subject, suite_options) {}
  ConformanceOptions suite_options;
  FileUnderTest subject;
  conformance::Harness h;
};

TEST(FileStore, TellsWhatItIs) {
  FileFixture plain;
  EXPECT_TRUE(plain.subject.store().traits().url.starts_with("file:/"));
  EXPECT_FALSE(plain.subject.store().traits().durable_after_put);
  FileFixture durable({.directory = {}, .fsync = true});
  EXPECT_TRUE(durable.subject.store().traits().durable_after_put);
  durable.h.create("a/b", conformance::make_bytes(10'000, 1));
  durable.h.expect_get("a/b", conformance::make_bytes(10'000, 1));
}

TEST(FileStore, RefusesOptionsThatCannotWork) {
  EXPECT_EQ(FileStore::open({.directory = ""}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(FileStore::open({.directory = "/tmp", .threads = 0}).error().code,
            ErrorCode::kInvalidArgument);
}

TEST(FileStore, AFullDiskIsOutOfSpaceAndLeavesNothing) {
  FileFixture f({.directory = {}, .min_free_bytes = std::uint64_t{1} << 60});
  const auto answer = f.h.put("a", conformance::make_bytes(10, 1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kOutOfSpace);
  EXPECT_EQ(answer.error().action, "PUT");
  EXPECT_TRUE(answer.error().key.ends_with("/kv/t/a")) << answer.error().key;
  EXPECT_FALSE(fs::exists(f.subject.root() / "t"));
}

TEST(FileStore, DirectReadsChangeWithTheAlignmentOfEachPiece) {
  FileFixture f({.directory = {}, .direct = true, .piece_bytes = 64 << 10});
  const auto body = conformance::make_bytes((1 << 20) + 5000, 1);
  f.h.create("a", body);
  std::byte* memory = nullptr;
  void* aligned = nullptr;
  ASSERT_EQ(::posix_memalign(&aligned, 4096, body.size() + 4096), 0);
  memory = static_cast<std::byte*>(aligned);
  struct Layout {
    std::size_t offset, length, shift;
    std::uint64_t grant_bytes;
  };
  for (const Layout& layout :
       {Layout{0, 1 << 20, 0, UINT64_MAX}, Layout{4096, 1 << 19, 0, 70'001},
        Layout{0, body.size(), 0, UINT64_MAX}, Layout{100, 1 << 19, 0, UINT64_MAX},
        Layout{4096, 1 << 19, 8, UINT64_MAX}}) {
    std::fill(memory, memory + body.size() + 4096, std::byte{0});
    auto got = f.h.start<GetAnswer>([&](GetCompletion done) {
      auto operation =
          f.h.store().get(f.h.loop(),
                          {.key = f.h.key("a"),
                           .offset = layout.offset,
                           .length = layout.length,
                           .destination = {Segment(memory + layout.shift, layout.length)},
                           .deadline = f.h.deadline(),
                           .grant_bytes = layout.grant_bytes},
                          std::move(done));
      operation->grant(UINT64_MAX);
      return operation;
    });
    ASSERT_TRUE(f.h.finish(got)) << got->result->error().to_string();
    EXPECT_EQ(std::memcmp(memory + layout.shift, body.data() + layout.offset, layout.length), 0);
  }
  std::free(aligned);
}

TEST(FileStore, TooManyCallsAreRefusedNotQueuedForEver) {
  FileFixture f({.directory = {}, .threads = 1, .queued_max = 4});
  const auto body = conformance::make_bytes(1'000'000, 1);
  std::vector<std::shared_ptr<conformance::Pending<PutAnswer>>> puts;
  for (int i = 0; i < 64; ++i) puts.push_back(f.h.start_put("x" + std::to_string(i), body));
  int refused = 0;
  for (const auto& put : puts) {
    const auto answer = f.h.finish(put);
    if (answer) continue;
    EXPECT_EQ(answer.error().code, ErrorCode::kLimitExceeded);
    ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LE(refused, 60);
}

TEST(FileStore, AFileCutShortWhileItIsReadIsCorrupt) {
  FileFixture f;
  f.h.create("cut", conformance::make_bytes(100'000, 1));
  auto reading = f.h.start_get("cut", {.length = 100'000, .grant_bytes = 1000});
  ASSERT_TRUE(
      f.h.driver().until([&] { return reading->reached() == 1000; }, std::chrono::seconds(20)));
  fs::resize_file(f.subject.root() / "t/cut@", 5000);
  reading->call->operation->grant(UINT64_MAX);
  const auto answer = f.h.finish(reading->call);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kCorrupt);
}

TEST(FileStore, TheStoreMayGoAsSoonAsTheLastCompletionCame) {
  for (int i = 0; i < 20; ++i) {
    FileFixture f;
    f.h.create("a", conformance::make_bytes(5'000'000, 1));
    auto reading = f.h.start_get("a", {.length = 5'000'000});
    f.h.driver().run([&] { reading->call->operation->cancel(); });
    static_cast<void>(f.h.finish(reading->call));
  }
}

}  // namespace
}  // namespace objectcache::store
