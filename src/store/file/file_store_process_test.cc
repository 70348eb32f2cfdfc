// Several processes on one directory: killed at any point, racing for one key, making and pruning
// one folder. The children are forked from a process without threads.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/thread_event_loop.h"
#include "store/file/file_store.h"
#include "store/file/object_tree.h"
#include "store/testing/temp_folder.h"

namespace objectcache::store {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

/// A body that tells whether it is whole: its seed, its size, then bytes that follow from the seed.
Bytes self_describing(std::uint64_t seed, std::size_t size) {
  Bytes out(std::max<std::size_t>(size, 16));
  const std::uint64_t size_word = out.size();
  std::memcpy(out.data(), &seed, 8);
  std::memcpy(out.data() + 8, &size_word, 8);
  Random random(seed);
  for (std::size_t i = 16; i < out.size(); i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(out.data() + i, &word, std::min<std::size_t>(8, out.size() - i));
  }
  return out;
}
bool is_whole(const Bytes& body) {
  if (body.size() < 16) return false;
  std::uint64_t words[2];
  std::memcpy(words, body.data(), 16);
  return words[1] == body.size() && self_describing(words[0], body.size()) == body;
}

/// Used by a child: a store with a loop of its own.
class Client {
 public:
  explicit Client(const std::string& root)
      : store_(FileStore::open({.directory = root, .min_free_bytes = 0, .threads = 2}).value()) {}
  Result<PutAnswer> put(const std::string& key, const Bytes& body, PutMode mode) {
    std::optional<Result<PutAnswer>> answer;
    store_->put(loop_,
                {.key = {key},
                 .body = {ConstSegment(body)},
                 .mode = mode,
                 .deadline = loop_.now() + std::chrono::minutes(1)},
                [&](Result<PutAnswer> result) { answer = std::move(result); });
    wait([&] { return answer.has_value(); });
    return *answer;
  }
  Result<void> remove(const std::string& key) {
    std::optional<Result<void>> answer;
    store_->remove(loop_, {key}, loop_.now() + std::chrono::minutes(1),
                   [&](Result<void> result) { answer = std::move(result); });
    wait([&] { return answer.has_value(); });
    return *answer;
  }

 private:
  void wait(const std::function<bool()>& ready) {
    if (!loop_.run_until(ready, loop_.now() + std::chrono::minutes(2))) ::_exit(9);
  }
  ThreadEventLoop loop_;
  std::unique_ptr<FileStore> store_;
};

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int i) {
    if (ends[i] >= 0) ::close(std::exchange(ends[i], -1));
  }
  int ends[2] = {-1, -1};
};

template <class Work>
pid_t fork_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  EXPECT_GT(child, 0);
  return child;
}
void give_up(const Error& error) {
  std::fprintf(stderr, "child: %s\n", error.to_string().c_str());
  ::_exit(1);
}
void expect_exit_0(pid_t child) {
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

class FileStoreProcesses : public testing::Test {
 protected:
  FileStoreProcesses() { tree(); }
  std::unique_ptr<ObjectTree> tree(std::chrono::seconds stale_temp_age = std::chrono::hours(1)) {
    return ObjectTree::open({.root = root_,
                             .url = "file:" + root_,
                             .min_free_bytes = 0,
                             .stale_temp_age = stale_temp_age})
        .value();
  }
  /// Reads every object that a listing shows.
  std::map<std::string, Bytes> read_all() {
    std::map<std::string, Bytes> out;
    const auto objects = tree();
    const CallName name{.action = "TEST", .subject = root_};
    ListRequest request;
    for (;;) {
      const auto page = objects->list(name, request, [] { return false; });
      EXPECT_TRUE(page);
      if (!page) return out;
      for (const auto& info : page->entries) {
        const auto object = objects->open_object(name, info.key);
        EXPECT_TRUE(object && *object) << info.key.text;
        Bytes body(info.size_bytes);
        EXPECT_EQ(::pread((*object)->file.number(), body.data(), body.size(), 0),
                  static_cast<ssize_t>(body.size()));
        out[info.key.text] = std::move(body);
      }
      if (page->next_start_after.empty()) return out;
      request.start_after = page->next_start_after;
    }
  }
  [[nodiscard]] std::size_t temps() const {
    const fs::path folder = fs::path(root_) / "~objectcache-1";
    return fs::exists(folder)
               ? static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}))
               : 0;
  }

  TempFolder folder_;
  const std::string root_ = folder_.path() + "/kv";
};

[[noreturn]] void write_for_ever(const std::string& root, std::uint64_t seed, int progress) {
  Client client(root);
  Random random(seed);
  // Made before, so that nearly all time is spent in the store.
  std::vector<Bytes> bodies;
  for (int i = 0; i < 5; ++i) {
    bodies.push_back(self_describing(random.next(), random.below(2'000'000)));
  }
  for (;;) {
    const std::string key =
        "p/" + std::to_string(random.below(8)) + "/" + std::to_string(random.below(4)) + "/shard";
    if (random.chance(0.2)) {
      if (const auto removed = client.remove(key); !removed) give_up(removed.error());
    } else {
      const Bytes& body = bodies[random.below(bodies.size())];
      const auto mode = random.chance(0.8) ? PutMode::kReplace : PutMode::kIfAbsent;
      if (const auto put = client.put(key, body, mode); !put) give_up(put.error());
    }
    if (::write(progress, "x", 1) != 1) ::_exit(2);
  }
}

TEST_F(FileStoreProcesses, KilledWritersLeaveWholeObjectsOnly) {
  Random random(1);
  std::size_t objects_seen = 0;
  std::size_t temps_seen = 0;
  for (std::uint64_t round = 0; round < 15; ++round) {
    Pipe progress;
    std::vector<pid_t> children;
    for (std::uint64_t i = 0; i < 3; ++i) {
      children.push_back(
          fork_child([&] { write_for_ever(root_, round * 10 + i, progress.ends[1]); }));
    }
    progress.close_end(1);
    // So many finished calls, and the children are killed wherever they are.
    char byte = 0;
    for (std::uint64_t left = 10 + random.below(30); left > 0; --left) {
      ASSERT_EQ(::read(progress.ends[0], &byte, 1), 1) << "a child ended by itself";
    }
    // A moment more, else most would be caught as they report.
    ::usleep(static_cast<useconds_t>(random.below(3000)));
    for (const pid_t child : children) ::kill(child, SIGKILL);
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status)) << "a child failed";
    }
    temps_seen += temps();
    for (const auto& [key, body] : read_all()) {
      EXPECT_TRUE(is_whole(body)) << key << " in round " << round;
      ++objects_seen;
    }
  }
  EXPECT_GT(objects_seen, 20U);
  EXPECT_GT(temps_seen, 0U) << "no child was killed while it wrote: the test shows nothing";
  EXPECT_GT(temps(), 0U);
  tree(std::chrono::seconds(0));
  EXPECT_EQ(temps(), 0U);
}

TEST_F(FileStoreProcesses, OfRacingProcessesOneCreates) {
  constexpr std::uint16_t kKeys = 200;
  Pipe start;
  Pipe created;
  std::vector<pid_t> children;
  for (std::uint64_t i = 0; i < 4; ++i) {
    children.push_back(fork_child([&] {
      start.close_end(1);
      Client client(root_);
      char byte = 0;
      if (::read(start.ends[0], &byte, 1) != 0) ::_exit(3);  // Ends when the parent lets all go.
      for (std::uint16_t k = 0; k < kKeys; ++k) {
        const Bytes body = self_describing(i, 20'000);
        const auto put = client.put("race/" + std::to_string(k), body, PutMode::kIfAbsent);
        if (!put) give_up(put.error());
        if (put->outcome == PutOutcome::kCreated && ::write(created.ends[1], &k, 2) != 2) {
          ::_exit(2);
        }
      }
    }));
  }
  created.close_end(1);
  start.close_end(1);
  std::map<std::uint16_t, int> counts;
  std::uint16_t key = 0;
  while (::read(created.ends[0], &key, 2) == 2) ++counts[key];
  for (const pid_t child : children) expect_exit_0(child);
  EXPECT_EQ(counts.size(), kKeys);
  for (const auto& [k, count] : counts) EXPECT_EQ(count, 1) << "key " << k;
  const auto objects = read_all();
  EXPECT_EQ(objects.size(), kKeys);
  for (const auto& [k, body] : objects) EXPECT_TRUE(is_whole(body)) << k;
  EXPECT_EQ(temps(), 0U);
}

TEST_F(FileStoreProcesses, MakingAndPruningOneFolderDoNotDisturbEachOther) {
  std::vector<pid_t> children;
  for (std::uint64_t i = 0; i < 4; ++i) {
    children.push_back(fork_child([&] {
      Client client(root_);
      const Bytes body = self_describing(i, 100);
      for (int n = 0; n < 400; ++n) {
        const std::string key = "a/b/c/" + std::to_string(i % 2);
        if (const auto put = client.put(key, body, PutMode::kReplace); !put) give_up(put.error());
        if (const auto gone = client.remove(key); !gone) give_up(gone.error());
      }
    }));
  }
  for (const pid_t child : children) expect_exit_0(child);
  EXPECT_TRUE(read_all().empty());
  EXPECT_FALSE(fs::exists(root_ + "/a"));
}

}  // namespace
}  // namespace objectcache::store
