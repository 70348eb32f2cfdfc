#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/s3/testing/fake_s3_world.h"

namespace objectcache::store_s3 {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::GetOutcome;
using store::PutMode;
using store::PutOutcome;
using Kind = FakeTreatment::Kind;

inline FakeTreatment of_kind(Kind kind) {
  FakeTreatment out;
  out.kind = kind;
  return out;
}
inline bool is_probe(const FakeS3World::Seen& seen) {
  return seen.request.target.find("objectcache-probe") != std::string::npos;
}
/// Requests that are not part of the probe of conditional PUT.
inline std::vector<std::string> methods(const FakeS3World& world) {
  std::vector<std::string> out;
  for (const auto& seen : world.seen) {
    if (!is_probe(seen)) out.push_back(seen.request.method);
  }
  return out;
}
/// Treats the first requests that are no probe as listed, the others well.
inline auto script_but_probes(std::vector<FakeTreatment> rows) {
  return [rows = std::move(rows), n = std::size_t{0}](const FakeS3World::Seen& seen,
                                                      std::size_t) mutable {
    if (is_probe(seen) || n >= rows.size()) return FakeTreatment{};
    return rows[n++];
  };
}

template <class T>
struct Waited {
  std::optional<Result<T>> result;
  int completions = 0;
  auto done() {
    return [this](Result<T> r) {
      ++completions;
      result = std::move(r);
    };
  }
};

using Methods = std::vector<std::string>;

inline Waited<std::optional<store::ObjectInfo>> head(FakeS3World& world, const std::string& key) {
  Waited<std::optional<store::ObjectInfo>> waited;
  world.store().head(world.loop, {key}, world.loop.now() + seconds(5), waited.done());
  world.loop.run_to_idle();
  EXPECT_EQ(waited.completions, 1);
  return waited;
}

}  // namespace objectcache::store_s3
