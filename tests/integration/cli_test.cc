// The command line as its users meet it: the program as a child process, a real KV sample, real
// servers.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/blocking.h"
#include "http/reactor.h"
#include "integration/servers.h"
#include "objectcache/cache.h"
#include "store/open_store.h"

namespace objectcache {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Outcome {
  int exit = -1;
  std::string out;

  [[nodiscard]] json document() const { return json::parse(out, nullptr, false); }
};

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Runs the program; standard error is part of the output where `with_errors`.
Outcome run(const std::vector<std::string>& arguments, bool with_errors = false) {
  std::string line = quoted(OBJECTCACHE_PROGRAM);
  for (const std::string& argument : arguments) line += " " + quoted(argument);
  line += with_errors ? " 2>&1" : " 2>/dev/null";
  Outcome outcome;
  FILE* pipe = popen(line.c_str(), "r");
  std::array<char, 4096> part{};
  while (const std::size_t n = fread(part.data(), 1, part.size(), pipe)) {
    outcome.out.append(part.data(), n);
  }
  const int status = pclose(pipe);
  outcome.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

const fs::path kSample = fs::path(OBJECTCACHE_SOURCE) / "tests/data/smollm2";

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "oc-cli-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { fs::remove_all(path_); }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::vector<std::string> with_prefix_options(std::vector<std::string> arguments) {
  for (const auto& [option, name] :
       {std::pair{"--namespace", "namespace.json"}, std::pair{"--tokens", "tokens.json"}}) {
    arguments.emplace_back(option);
    arguments.push_back((kSample / name).string());
  }
  return arguments;
}

Outcome put(const std::string& url) {
  return run(
      with_prefix_options({"put", url, "--kv", (kSample / "kv.safetensors").string(), "--json"}));
}
Outcome get(const std::string& url, const std::string& out, bool with_errors = false) {
  return run(with_prefix_options({"get", url, "--out", out, "--require-all"}), with_errors);
}

/// Changes one byte of a stored object as no client of ours would.
class Saboteur {
 public:
  explicit Saboteur(const std::string& url) : reactor_(http::Reactor::start().value()) {
    Environment environment;
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}) {
      if (const char* value = std::getenv(name)) environment.variables[name] = value;
    }
    store_ = store::open_store(url, environment).value();
  }
  ~Saboteur() {
    reactor_->stop();
    store_.reset();
  }
  Saboteur(const Saboteur&) = delete;
  Saboteur& operator=(const Saboteur&) = delete;

  /// The main object of some chunk.
  std::string flip_a_byte(std::uint64_t at) {
    const auto keys = list();
    const auto chunk = std::ranges::find_if(
        keys, [](const auto& info) { return info.key.text.find("tp0of1") != std::string::npos; });
    EXPECT_NE(chunk, keys.end());
    std::vector<std::byte> body(chunk->size_bytes);
    call<store::GetAnswer>([&](auto done) {
      store::GetRequest request{.key = chunk->key,
                                .length = body.size(),
                                .destination = {Segment(body)},
                                .deadline = deadline()};
      return store_->get(*reactor_, std::move(request), std::move(done));
    });
    body[at % body.size()] ^= std::byte{0x10};
    call<store::PutAnswer>([&](auto done) {
      return store_->put(*reactor_,
                         {.key = chunk->key,
                          .body = {body},
                          .mode = store::PutMode::kReplace,
                          .deadline = deadline()},
                         std::move(done));
    });
    return chunk->key.text;
  }

 private:
  TimePoint deadline() const { return reactor_->now() + std::chrono::seconds(30); }
  template <class T, class Start>
  T call(Start start) {
    auto result = run_blocking<T>(*reactor_, deadline(), std::move(start));
    if (!result) ADD_FAILURE() << result.error().to_string();
    return std::move(*result);
  }
  std::vector<store::ObjectInfo> list() {
    return call<store::ListPage>([&](auto done) {
             return store_->list(*reactor_,
                                 {.prefix = {}, .start_after = {}, .deadline = deadline()},
                                 std::move(done));
           })
        .entries;
  }

  std::unique_ptr<http::Reactor> reactor_;
  std::unique_ptr<store::ObjectStore> store_;
};

/// What every store must do for a real KV sample.
void expect_round_trip(const std::string& url) {
  const TemporaryFolder folder;
  const Outcome cold = run(with_prefix_options({"match", url, "--json"}));
  EXPECT_EQ(cold.exit, 3) << "an empty store is a miss: " << cold.out;

  const Outcome first = put(url);
  ASSERT_EQ(first.exit, 0) << first.out;
  EXPECT_EQ(first.document()["published"], 2);
  EXPECT_EQ(first.document()["tail_tokens_left_out"], 0);
  const Outcome again = put(url);
  ASSERT_EQ(again.exit, 0) << again.out;
  EXPECT_EQ(again.document()["already_present"], 2);

  const Outcome match = run(with_prefix_options({"match", url, "--prove", "--json"}));
  ASSERT_EQ(match.exit, 0) << match.out;
  EXPECT_EQ(match.document()["tokens"], 128);

  for (const char* mode : {"planned", "chunkwise", "layerwise", "published", "whole-objects"}) {
    const Outcome got = run(with_prefix_options(
        {"get", url, "--out", folder.file(mode), "--mode", mode, "--connections", "2"}));
    ASSERT_EQ(got.exit, 0) << mode << got.out;
    EXPECT_EQ(read(folder.file(mode)), read(kSample / "kv.safetensors")) << mode;
  }
  EXPECT_EQ(run({"verify", url}).exit, 0);
  const Outcome stat = run({"stat", url, "--json"});
  EXPECT_EQ(stat.document()["shards"][0]["chunks"], 2) << stat.out;

  Saboteur saboteur(url);
  const std::string victim = saboteur.flip_a_byte(1'000'000);
  const Outcome verify = run({"verify", url, "--json"});
  EXPECT_EQ(verify.exit, 4) << verify.out;
  ASSERT_EQ(verify.document()["bad"].size(), 1U) << verify.out;
  EXPECT_EQ(verify.document()["bad"][0]["key"], victim);
  const Outcome refused = get(url, folder.file("bad"), true);
  EXPECT_EQ(refused.exit, 4) << refused.out;
  EXPECT_FALSE(fs::exists(folder.file("bad"))) << "a failed get leaves no file";

  ASSERT_EQ(put(url).exit, 0) << "the next writer stores anew what was bad";
  ASSERT_EQ(run({"verify", url}).exit, 0);
  EXPECT_EQ(get(url, folder.file("mended")).exit, 0);
  EXPECT_EQ(read(folder.file("mended")), read(kSample / "kv.safetensors"));

  EXPECT_EQ(run({"rm", url, "--whole-tenant"}).exit, 2) << "rm wants --yes";
  EXPECT_EQ(run({"rm", url, "--whole-tenant", "--yes"}).exit, 0);
  EXPECT_EQ(run(with_prefix_options({"match", url})).exit, 3);
}

class Cli : public integration::ServerTest {};
INSTANTIATE_TEST_SUITE_P(Servers, Cli, integration::every_server(), integration::server_name);

TEST_P(Cli, StoresARealSampleAndGivesItBackIdentical) {
  expect_round_trip(integration::with_prefix(server().url, "cli-round-trip"));
}

TEST_P(Cli, DoctorFindsNothingBroken) {
  const Outcome doctor =
      run({"doctor", integration::with_prefix(server().url, "doctor"), "--json"});
  EXPECT_EQ(doctor.exit, 0) << doctor.out;
  for (const json& check : doctor.document()["checks"]) {
    EXPECT_NE(check["verdict"], "FAILED") << check.dump();
  }
  EXPECT_GE(doctor.document()["checks"].size(), 11U);
}

TEST(CliFile, StoresARealSampleAndGivesItBackIdentical) {
  const TemporaryFolder folder;
  expect_round_trip("file:" + folder.file("store"));
}

TEST(CliFile, SaysHowManyTailTokensWereLeftOut) {
  const TemporaryFolder folder;
  std::string spec = read(kSample / "namespace.json");
  for (const char* field : {"\"unit_tokens\": 64", "\"chunk_tokens\": 64"}) {
    spec.replace(spec.find(field), std::string(field).size(),
                 std::string(field, std::string(field).size() - 2) + "48");
  }
  std::ofstream(folder.file("ns.json")) << spec;
  const Outcome outcome =
      run({"put", "file:" + folder.file("store"), "--kv", (kSample / "kv.safetensors").string(),
           "--namespace", folder.file("ns.json"), "--tokens", (kSample / "tokens.json").string()});
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_NE(outcome.out.find("32 tail tokens"), std::string::npos) << outcome.out;
}

TEST(CliFile, BadInputGivesOneClearLineAndItsExitCode) {
  const TemporaryFolder folder;
  const std::string store = "file:" + folder.file("store");
  const struct {
    std::vector<std::string> arguments;
    int exit;
    std::string says;
  } cases[] = {
      {{"frobnicate"}, 2, "frobnicate"},
      {{"stat", store, "--colour"}, 2, "--colour"},
      {{"stat", "gopher://x"}, 2, "gopher"},
      {{"stat", store + "?durabilty=fsync"}, 2, "durabilty"},
      {{"stat", "s3://bucket?endpont=http://127.0.0.1:1"}, 2, "endpont"},
      {{"stat", store, "--tenant", "No Such"}, 2, "tenant"},
      {{"ls", store, "xyz"}, 2, "32 hexadecimal"},
      {{"get", store, "--namespace", "/nowhere", "--tokens", "/nowhere", "--out", "x"},
       2,
       "/nowhere"},
      {{"verify", store, std::string(32, '0')}, 1, "namespace.json"},
  };
  for (const auto& c : cases) {
    const Outcome outcome = run(c.arguments, true);
    EXPECT_EQ(outcome.exit, c.exit) << c.arguments[0] << ": " << outcome.out;
    EXPECT_NE(outcome.out.find(c.says), std::string::npos) << c.arguments[0] << ": " << outcome.out;
  }
}

TEST(CliFile, ADeadStoreIsNamedWithinItsDeadline) {
  setenv("AWS_ACCESS_KEY_ID", "k", 0);
  setenv("AWS_SECRET_ACCESS_KEY", "s", 0);
  const Outcome outcome = run({"stat", "s3://bucket/p?endpoint=http://127.0.0.1:9&path_style=true",
                               "--deadline-ms", "2000"},
                              true);
  EXPECT_EQ(outcome.exit, 5) << outcome.out;
  EXPECT_NE(outcome.out.find("127.0.0.1"), std::string::npos) << outcome.out;
}

TEST(CliDemo, DrawsBothTimelinesAndIsFasterLayerByLayer) {
  const Outcome text = run({"demo", "--scale", "112"});
  EXPECT_EQ(text.exit, 0);
  EXPECT_NE(text.out.find("Layer by layer"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\u2588"), std::string::npos);
  const Outcome outcome = run({"demo", "--scale", "112", "--json"});
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_GT(outcome.document()["whole_prefix_ttft_ms"], outcome.document()["compute_ms"]);
}

}  // namespace
}  // namespace objectcache
