#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "store/s3/testing/fake_s3_world.h"

namespace objectcache::store_s3 {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::GetOutcome;
using Kind = FakeTreatment::Kind;

inline std::string pattern(std::size_t size, unsigned seed = 1) {
  Random random(seed);
  std::string out(size, 0);
  for (char& c : out) c = static_cast<char>('A' + random.below(26));
  return out;
}

/// Treats the first requests as listed, the others well.
inline auto script(std::vector<FakeTreatment> rows) {
  return [rows = std::move(rows)](const FakeS3World::Seen&, std::size_t n) {
    return n < rows.size() ? rows[n] : FakeTreatment{};
  };
}
inline FakeTreatment tampered(std::function<void(http::ResponseHead&, std::string&)> tamper) {
  FakeTreatment out;
  out.tamper = std::move(tamper);
  return out;
}
inline void set_header(http::ResponseHead& head, std::string_view name, std::string value) {
  for (http::Header& header : head.headers) {
    if (header.name == name) header.value = value;
  }
}
inline void drop_header(http::ResponseHead& head, std::string_view name) {
  std::erase_if(head.headers, [&](const http::Header& h) { return h.name == name; });
}

class Get : public ::testing::Test {
 protected:
  Get() { world.put("k", bytes); }
  ~Get() override {
    EXPECT_TRUE(world.violations.empty()) << world.violations.front();
    EXPECT_EQ(world.live, 0U);
  }
  void expect_good(std::uint64_t offset, std::uint64_t length) {
    std::string into(length, '?');
    const auto answer = world.get("k", offset, into);
    ASSERT_TRUE(answer) << answer.error().to_string();
    ASSERT_EQ(answer->outcome, GetOutcome::kOk);
    EXPECT_EQ(into, bytes.substr(offset, length));
    EXPECT_EQ(answer->object_bytes, bytes.size());
    EXPECT_EQ(answer->version.text, world.objects["k"].etag);
  }
  Error expect_error(ErrorCode code, std::size_t length = 1000) {
    std::string into(length, '?');
    const auto answer = world.get("k", 0, into);
    if (answer) {
      ADD_FAILURE() << "outcome " << static_cast<int>(answer->outcome);
      return {};
    }
    EXPECT_EQ(answer.error().code, code) << answer.error().to_string();
    EXPECT_EQ(answer.error().action, "GET");
    EXPECT_EQ(answer.error().key, "s3://bkt/k");
    return answer.error();
  }
  GetOutcome outcome(std::size_t length = 1000) {
    std::string into(length, '?');
    const auto answer = world.get("k", 0, into);
    EXPECT_TRUE(answer) << answer.error().to_string();
    return answer ? answer->outcome : GetOutcome::kOk;
  }

  FakeS3World world;
  const std::string bytes = pattern(300'000);
};

/// A read that goes on while the test does other things.
struct Running {
  Running(FakeS3World& world, std::uint64_t length, std::uint64_t grant = UINT64_MAX)
      : into(length, '?') {
    store::GetRequest request;
    request.key = {"k"};
    request.length = length;
    // Three segments, so that resuming inside one is tested as well.
    auto whole = std::as_writable_bytes(std::span(into));
    request.destination = {whole.first(length / 3), whole.subspan(length / 3, 1),
                           whole.subspan(length / 3 + 1)};
    request.deadline = world.loop.now() + seconds(30);
    request.grant_bytes = grant;
    request.on_bytes = [this](std::uint64_t n, const store::ObjectVersion& version) {
      EXPECT_GT(n, delivered);
      EXPECT_FALSE(version.text.empty());
      delivered = n;
    };
    handle = world.store().get(world.loop, std::move(request), [this](auto answer) {
      ++completions;
      result = std::move(answer);
    });
  }
  std::string into;
  std::uint64_t delivered = 0;
  int completions = 0;
  std::optional<Result<store::GetAnswer>> result;
  store::OperationHandle handle;
};

}  // namespace objectcache::store_s3
