#include "store/file/object_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "store/file/object_names.h"
#include "store/testing/temp_folder.h"

namespace objectcache::store {
namespace {

namespace fs = std::filesystem;

const CallName kName{.action = "TEST", .subject = "file:test"};

class ObjectTreeTest : public testing::Test {
 protected:
  std::unique_ptr<ObjectTree> open(ObjectTree::Options options = {.root = {}, .url = "file:test"}) {
    if (options.root.empty()) options.root = root();
    if (!options.min_free_bytes) options.min_free_bytes = 0;
    auto tree = ObjectTree::open(std::move(options));
    EXPECT_TRUE(tree) << tree.error().to_string();
    return tree ? std::move(*tree) : nullptr;
  }
  static Result<PutAnswer> put(const ObjectTree& tree, const std::string& key,
                               std::string_view body, PutMode mode = PutMode::kIfAbsent) {
    auto temp = tree.create_temp(kName, body.size());
    if (!temp) return std::unexpected(temp.error());
    EXPECT_EQ(::write(temp->number(), body.data(), body.size()), static_cast<ssize_t>(body.size()));
    return tree.publish(kName, std::move(*temp), {key}, mode);
  }
  static std::string get(const ObjectTree& tree, const std::string& key) {
    const auto object = tree.open_object(kName, {key});
    if (!object) return object.error().to_string();
    if (!*object) return "missing";
    std::string out((*object)->info.size_bytes, 0);
    EXPECT_EQ(::pread((*object)->file.number(), out.data(), out.size(), 0),
              static_cast<ssize_t>(out.size()));
    return out;
  }
  [[nodiscard]] std::string root() const { return folder_.path() + "/kv"; }
  [[nodiscard]] fs::path at(const std::string& path) const { return fs::path(root()) / path; }
  [[nodiscard]] std::size_t temps() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(at("~objectcache-1")), {}));
  }

  TempFolder folder_;
};

TEST_F(ObjectTreeTest, ANewRootIsItsOwnersAlone) {
  const auto tree = open();
  struct stat status{};
  ASSERT_EQ(::stat(root().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(ObjectTreeTest, OpeningNeedsTheFolderAbove) {
  const auto tree = ObjectTree::open({.root = root() + "/x/y", .url = "file:test"});
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().code, ErrorCode::kNotFound);
  std::ofstream(folder_.path() + "/plain") << "x";
  const auto plain = ObjectTree::open({.root = folder_.path() + "/plain", .url = "file:test"});
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().code, ErrorCode::kIncompatible);
  const auto absent = ObjectTree::open({.root = root(), .url = "file:test", .create_root = false});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
}

TEST_F(ObjectTreeTest, ADirectoryOfAnotherLayoutIsRefused) {
  open();
  fs::create_directory(at("~objectcache-2"));
  const auto tree = ObjectTree::open({.root = root(), .url = "file:test"});
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().code, ErrorCode::kIncompatible);
}

TEST_F(ObjectTreeTest, PublishesUnderTheKeysNameAndLeavesNoTemp) {
  const auto tree = open();
  ASSERT_TRUE(put(*tree, "a/b/c", "hello"));
  EXPECT_TRUE(fs::is_regular_file(at("a/b/c@")));
  EXPECT_EQ(get(*tree, "a/b/c"), "hello");
  EXPECT_EQ(put(*tree, "a/b/c", "other")->outcome, PutOutcome::kAlreadyExists);
  EXPECT_EQ(get(*tree, "a/b/c"), "hello");
  EXPECT_EQ(put(*tree, "a/b/c", "other", PutMode::kReplace)->outcome, PutOutcome::kCreated);
  EXPECT_EQ(get(*tree, "a/b/c"), "other");
  EXPECT_EQ(temps(), 0U);
}

TEST_F(ObjectTreeTest, AnAbandonedBodyIsRemoved) {
  const auto tree = open();
  {
    const auto temp = tree->create_temp(kName, 5);
    ASSERT_TRUE(temp);
    EXPECT_EQ(temps(), 1U);
  }
  EXPECT_EQ(temps(), 0U);
}

TEST_F(ObjectTreeTest, StaleTempsAreSweptByAgeOnly) {
  put(*open(), "a", "x").value();
  std::ofstream(at("~objectcache-1/deadbeef")) << "half a body";
  open();
  EXPECT_EQ(temps(), 1U) << "it may belong to a living writer";
  open({.root = {}, .url = "file:test", .stale_temp_age = std::chrono::seconds(0)});
  EXPECT_EQ(temps(), 0U);
}

TEST_F(ObjectTreeTest, AWriterWhoseTempWasSweptFailsCleanly) {
  const auto tree = open();
  auto temp = tree->create_temp(kName, 5);
  ASSERT_TRUE(temp);
  for (const auto& file : fs::directory_iterator(at("~objectcache-1"))) fs::remove(file);
  const auto answer = tree->publish(kName, std::move(*temp), {"a"}, PutMode::kIfAbsent);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(get(*tree, "a"), "missing");
}

TEST_F(ObjectTreeTest, RemovingPrunesEmptyFoldersOnly) {
  const auto tree = open();
  ASSERT_TRUE(put(*tree, "a/b/c", "1") && put(*tree, "a/d", "2"));
  ASSERT_TRUE(tree->remove(kName, {"a/b/c"}));
  EXPECT_FALSE(fs::exists(at("a/b")));
  EXPECT_TRUE(fs::exists(at("a")));
  ASSERT_TRUE(tree->remove(kName, {"a/d"}));
  EXPECT_FALSE(fs::exists(at("a")));
  EXPECT_TRUE(fs::exists(at("")));
  ASSERT_TRUE(tree->remove(kName, {"a/d"}));
}

TEST_F(ObjectTreeTest, ForeignFilesAreNeitherListedNorTouched) {
  const auto tree = open();
  ASSERT_TRUE(put(*tree, "a/b", "1"));
  std::ofstream(at("a/README")) << "mine";
  std::ofstream(at("a/bad name@")) << "mine";
  fs::create_directory(at("a/dir@"));
  ::mkfifo(at("a/pipe@").c_str(), 0600);
  const auto page = tree->list(kName, {.prefix = ""}, [] { return false; });
  ASSERT_TRUE(page);
  ASSERT_EQ(page->entries.size(), 1U);
  EXPECT_EQ(page->entries[0].key.text, "a/b");
  const auto pipe = tree->open_object(kName, {"a/pipe"});
  ASSERT_FALSE(pipe) << "a pipe must not be opened";
  EXPECT_EQ(pipe.error().code, ErrorCode::kIncompatible);
  ASSERT_TRUE(tree->remove(kName, {"a/b"}));
  EXPECT_TRUE(fs::exists(at("a/README")));
}

TEST_F(ObjectTreeTest, SymbolicLinksBelowTheRootAreNotFollowed) {
  const std::string outside = folder_.path() + "/outside";
  fs::create_directories(outside + "/sub");
  std::ofstream(outside + "/secret@") << "secret";
  const auto tree = open();
  fs::create_symlink(outside, at("link"));
  fs::create_symlink(outside + "/secret@", at("leaf@"));
  const auto through_folder = tree->open_object(kName, {"link/secret"});
  EXPECT_TRUE(!through_folder || !*through_folder);
  const auto leaf = tree->open_object(kName, {"leaf"});
  ASSERT_FALSE(leaf);
  EXPECT_EQ(leaf.error().code, ErrorCode::kPermissionDenied);
  EXPECT_FALSE(put(*tree, "link/new", "x"));
  EXPECT_FALSE(fs::exists(outside + "/new@"));
  static_cast<void>(tree->remove(kName, {"link/secret"}));
  static_cast<void>(tree->remove(kName, {"link/sub/nothing"}));
  EXPECT_TRUE(fs::exists(outside + "/secret@"));
  EXPECT_TRUE(fs::exists(outside + "/sub"));
  const auto page = tree->list(kName, {.prefix = ""}, [] { return false; });
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->entries.empty());
}

TEST_F(ObjectTreeTest, TheRootItselfMayBeALink) {
  fs::create_directory(folder_.path() + "/real");
  fs::create_symlink(folder_.path() + "/real", root());
  const auto tree = open();
  ASSERT_TRUE(put(*tree, "a", "1"));
  EXPECT_TRUE(fs::exists(folder_.path() + "/real/a@"));
}

TEST_F(ObjectTreeTest, KeepsFreeSpaceFree) {
  auto tree = open({.root = {}, .url = "file:test", .min_free_bytes = std::uint64_t{1} << 60});
  const auto refused = put(*tree, "a", "x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfSpace);
  EXPECT_NE(refused.error().message.find("min_free"), std::string::npos);
  tree = open();
  EXPECT_EQ(tree->create_temp(kName, std::uint64_t{1} << 62).error().code, ErrorCode::kOutOfSpace);
  EXPECT_TRUE(put(*tree, "a", "x"));
}

TEST_F(ObjectTreeTest, AnUnreadableOrReadOnlyDirectorySaysSo) {
  put(*open(), "a", "x").value();
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(root(), fs::perms(0555));
  // Root may do anything, so the check runs as someone else.
  const pid_t child = ::fork();
  if (child == 0) {
    // Opened before: the other user may not reach a private folder of the tests by its path.
    const auto tree = ObjectTree::open({.root = root(), .url = "file:t", .min_free_bytes = 0});
    if (!tree) ::_exit(1);
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(90);
    if (get(**tree, "a") != "x") ::_exit(2);
    const auto answer = put(**tree, "b", "y");
    if (answer) ::_exit(3);
    if (answer.error().code != ErrorCode::kPermissionDenied) ::_exit(4);
    const auto removed = (*tree)->remove(kName, {"a"});
    ::_exit(!removed && removed.error().code == ErrorCode::kPermissionDenied ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  fs::permissions(root(), fs::perms(0755));
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 90) GTEST_SKIP() << "cannot become another user here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ObjectTreeTest, VersionsDifferEvenWhenAnInodeIsUsedAgain) {
  const auto tree = open();
  std::set<std::string> versions;
  for (int i = 0; i < 200; ++i) {
    versions.insert(put(*tree, "a", "same")->version.text);
    ASSERT_TRUE(tree->remove(kName, {"a"}));
  }
  EXPECT_EQ(versions.size(), 200U);
}

TEST_F(ObjectTreeTest, AnOpenObjectOutlivesItsName) {
  const auto tree = open();
  ASSERT_TRUE(put(*tree, "a", "first"));
  const auto object = tree->open_object(kName, {"a"});
  ASSERT_TRUE(put(*tree, "a", "second", PutMode::kReplace));
  ASSERT_TRUE(tree->remove(kName, {"a"}));
  char bytes[5];
  EXPECT_EQ(::pread((*object)->file.number(), bytes, 5, 0), 5);
  EXPECT_EQ(std::string_view(bytes, 5), "first");
}

TEST_F(ObjectTreeTest, LargeFoldersAreListedInSeveralPasses) {
  const auto tree = open();
  // Made by hand: 9,000 publications would take long under the sanitizers.
  fs::create_directory(at("big"));
  for (int i = 0; i < 9'000; ++i) std::ofstream(at("big/" + std::to_string(i) + "@"));
  ListRequest request{.prefix = "big/"};
  std::size_t count = 0;
  std::string last;
  for (;;) {
    const auto page = tree->list(kName, request, [] { return false; });
    ASSERT_TRUE(page);
    for (const auto& info : page->entries) {
      EXPECT_GT(info.key.text, last);
      last = info.key.text;
      ++count;
    }
    if (page->next_start_after.empty()) break;
    request.start_after = page->next_start_after;
  }
  EXPECT_EQ(count, 9'000U);
}

TEST_F(ObjectTreeTest, FsyncModePublishesToo) {
  const auto tree = open({.root = {}, .url = "file:test", .fsync = true});
  ASSERT_TRUE(put(*tree, "a/b/c", "1"));
  ASSERT_TRUE(put(*tree, "a/b/c", "2", PutMode::kReplace));
  EXPECT_EQ(get(*tree, "a/b/c"), "2");
}

TEST(ObjectNames, EntriesSortLikeTheirKeys) {
  EXPECT_EQ(tree_entry("a@", false)->sort_key, "a");
  EXPECT_EQ(tree_entry("a", true)->sort_key, "a/");
  EXPECT_LT(*tree_entry("a-b@", false), *tree_entry("a", true));
  EXPECT_LT(*tree_entry("a", true), *tree_entry("a0@", false));
  for (const auto* name : {"a", "@", "..@", "a~@", "a@@"}) EXPECT_FALSE(tree_entry(name, false));
  for (const auto* name : {".", "..", "~objectcache-1", "a@"}) EXPECT_FALSE(tree_entry(name, true));
}

}  // namespace
}  // namespace objectcache::store
