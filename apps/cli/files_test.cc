#include "cli/files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace objectcache::cli {
namespace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "oc-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }
  [[nodiscard]] bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

TEST(Tokens, ReadsArraysAndPlainNumbers) {
  const std::vector<TokenId> expected = {1, 20, 4294967295};
  for (const char* text : {"[1, 20, 4294967295]", "1 20 4294967295\n", "1,20,4294967295",
                           " \n[1,20,4294967295]\n", "1\n20\n4294967295"}) {
    EXPECT_EQ(parse_tokens(text).value_or(std::vector<TokenId>{}), expected) << text;
  }
  EXPECT_TRUE(parse_tokens("[]").value().empty());
}

TEST(Tokens, RefusesWhatIsNoTokenId) {
  for (const char* text : {"[1, 2", "1 x", "-1", "1.5", "4294967296", "[1] 2", "1;2"}) {
    const auto tokens = parse_tokens(text);
    ASSERT_FALSE(tokens.has_value()) << text;
    EXPECT_EQ(tokens.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(MappedFile, AppearsUnderItsNameOnlyWhenPublished) {
  const TemporaryFolder folder;
  {
    auto file = MappedFile::create(folder / "out", 4);
    ASSERT_TRUE(file.has_value());
    file->bytes()[0] = std::byte{'a'};
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
    ASSERT_TRUE(file->publish().has_value());
  }
  EXPECT_EQ(read_file(folder / "out", 100).value(), std::string("a\0\0\0", 4));
}

TEST(MappedFile, LeavesNothingWhenDropped) {
  const TemporaryFolder folder;
  {
    auto file = MappedFile::create(folder / "out", 4);
  }
  EXPECT_TRUE(folder.empty());
}

TEST(MappedFile, NamesThePathOfAFileThatIsNotThere) {
  const auto file = MappedFile::open("/no/such/file");
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().key, "/no/such/file");
}

TEST(ReadFile, RefusesAFileBeyondTheLimit) {
  const TemporaryFolder folder;
  std::ofstream(folder / "f") << "12345";
  EXPECT_TRUE(read_file(folder / "f", 5).has_value());
  EXPECT_FALSE(read_file(folder / "f", 4).has_value());
}

}  // namespace
}  // namespace objectcache::cli
