#include "cli/bench/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace objectcache::cli {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

ChildCommand shell(std::string script) {
  return {.program = "/bin/sh", .arguments = {"-c", std::move(script)}};
}

TEST(RunChild, gives_what_it_printed) {
  auto output = run_child(shell("echo one; echo two"), seconds(30));
  ASSERT_TRUE(output) << output.error().to_string();
  EXPECT_EQ(*output, "one\ntwo\n");
}

TEST(RunChild, adds_and_replaces_variables) {
  ChildCommand command = shell("echo $OC_A $HOME");
  command.variables = {{"OC_A", "a b"}, {"HOME", "/h"}};
  auto output = run_child(command, seconds(30));
  ASSERT_TRUE(output) << output.error().to_string();
  EXPECT_EQ(*output, "a b /h\n");
}

TEST(RunChild, says_how_it_failed) {
  auto output = run_child(shell("echo why; exit 3"), seconds(30));
  ASSERT_FALSE(output);
  EXPECT_THAT(output.error().message, HasSubstr("exit status 3: why"));
  EXPECT_EQ(output.error().key, "/bin/sh");
}

TEST(RunChild, a_program_that_is_not_there_is_unsupported) {
  auto output = run_child({.program = "/nowhere/at/all", .arguments = {}}, seconds(30));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::kUnsupported);
}

TEST(RunChild, does_not_outlast_its_timeout) {
  auto output = run_child(shell("exec sleep 1000"), seconds(0));
  ASSERT_FALSE(output);
  EXPECT_THAT(output.error().message, HasSubstr("not done after"));
}

TEST(ServerChild, reads_up_to_the_last_line_and_ends_the_program) {
  auto server = ServerChild::start(shell("echo noise; echo A=1; echo B=x=y; exec sleep 1000"), "B",
                                   seconds(30));
  ASSERT_TRUE(server) << server.error().to_string();
  EXPECT_EQ(server->said().at("A"), "1");
  EXPECT_EQ(server->said().at("B"), "x=y");
}

TEST(ServerChild, one_that_ends_first_did_not_come_up) {
  auto server = ServerChild::start(shell("echo A=1; echo broken"), "B", seconds(30));
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().message, HasSubstr("did not come up"));
}

TEST(OwnProgram, lies_beside_itself) {
  EXPECT_TRUE(is_program(own_program()));
  EXPECT_EQ(program_beside("oc_cli_bench_test"), own_program());
  EXPECT_FALSE(is_program(program_beside("no_such_program")));
}

}  // namespace
}  // namespace objectcache::cli
