// Cases about single objects: put, get, head, versions, races of writers.

#include <thread>

#include "store/testing/conformance_harness.h"

namespace objectcache::store::conformance {
namespace {

void round_trip_of_many_sizes(Harness& h) {
  for (const std::size_t size : {1U, 2U, 1000U, 4096U, 65537U, 1048577U}) {
    const auto name = "size-" + std::to_string(size);
    const Bytes body = make_bytes(size, size);
    const ObjectVersion version = h.create(name, body);
    h.expect_get(name, body);
    const auto info = h.head(name);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->key, h.key(name));
    EXPECT_EQ(info->size_bytes, size);
    EXPECT_FALSE(info->version.text.empty());
    if (!version.text.empty()) {
      EXPECT_EQ(info->version, version);
    }
    h.expect_get(name, body, {.version = info->version});
  }
}

void put_sends_scattered_memory(Harness& h) {
  const Bytes body = make_bytes(300'001, 1);
  const auto put = h.start_put("scattered", body, PutMode::kIfAbsent, {1, 4095, 3, 70'000, 2});
  ASSERT_TRUE(h.finish(put)) << put->result->error().to_string();
  h.expect_get("scattered", body);
}

void get_fills_segments_of_odd_sizes(Harness& h) {
  const Bytes body = make_bytes(200'003, 2);
  h.create("odd", body);
  h.expect_get("odd", body, {.segment_sizes = {1, 3, 7, 4096, 65537, 2}});
  h.expect_get("odd", Bytes(body.begin() + 99, body.end()), {.offset = 99, .segment_sizes = {13}});
}

void get_reads_exactly_the_range(Harness& h) {
  const Bytes body = make_bytes(100'000, 3);
  h.create("range", body);
  for (const auto& [offset, length] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 1}, {99'999, 1}, {1, 99'998}, {4096, 4096}, {50'000, 50'000}, {0, 100'000}}) {
    const auto first = body.begin() + static_cast<std::ptrdiff_t>(offset);
    h.expect_get("range", Bytes(first, first + static_cast<std::ptrdiff_t>(length)),
                 {.offset = offset});
  }
  auto whole = h.start_get("range", {.offset = 10, .length = 5});
  const auto answer = h.finish(whole->call);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->object_bytes, 100'000U);
}

void zero_length_object(Harness& h) {
  h.create("empty", {});
  const auto info = h.head("empty");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->size_bytes, 0U);
  h.expect_get_outcome("empty", GetOutcome::kOutOfRange, {.length = 1});
}

void missing_is_a_value(Harness& h) {
  h.expect_get_outcome("nothing", GetOutcome::kMissing, {.length = 10});
  h.expect_get_outcome("nothing/at/all", GetOutcome::kMissing, {.length = 10});
  EXPECT_FALSE(h.head("nothing"));
  h.remove("nothing");
}

void range_beyond_the_end_delivers_nothing(Harness& h) {
  h.create("short", make_bytes(1000, 4));
  for (const auto& [offset, length] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 1001}, {999, 2}, {1000, 1}, {5000, 100}, {std::uint64_t{1} << 40, 1}}) {
    auto reading = h.start_get("short", {.offset = offset, .length = length});
    const auto answer = h.finish(reading->call);
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->outcome, GetOutcome::kOutOfRange) << offset << "+" << length;
    EXPECT_TRUE(reading->memory == Bytes(length, std::byte{0xAA})) << "memory was touched";
  }
}

void pinned_version_is_honoured(Harness& h) {
  const Bytes first = make_bytes(5000, 5);
  const Bytes second = make_bytes(5000, 6);
  h.create("pinned", first);
  const auto old_info = h.head("pinned");
  ASSERT_TRUE(old_info);
  ASSERT_TRUE(h.put("pinned", second, PutMode::kReplace));
  h.expect_get_outcome("pinned", GetOutcome::kVersionChanged,
                       {.length = 5000, .version = old_info->version});
  const auto new_info = h.head("pinned");
  ASSERT_TRUE(new_info);
  h.expect_get("pinned", second, {.version = new_info->version});
  h.remove("pinned");
  h.expect_get_outcome("pinned", GetOutcome::kMissing,
                       {.length = 5000, .version = new_info->version});
}

void every_publication_has_its_own_version(Harness& h) {
  std::set<std::string> versions;
  for (std::uint64_t i = 0; i < 24; ++i) {
    if (i % 3 == 2) h.remove("again");
    ASSERT_TRUE(h.put("again", make_bytes(100, i), PutMode::kReplace));
    const auto info = h.head("again");
    ASSERT_TRUE(info);
    EXPECT_TRUE(versions.insert(info->version.text).second) << "version came twice: " << i;
  }
}

/// An ETag made of the content cannot do this: such stores declare a deviation.
void equal_bytes_published_again_have_a_new_version(Harness& h) {
  const Bytes body = make_bytes(100, 7);
  h.create("same", body);
  const auto before = h.head("same");
  ASSERT_TRUE(h.put("same", body, PutMode::kReplace));
  const auto after = h.head("same");
  ASSERT_TRUE(before && after);
  EXPECT_NE(before->version.text, after->version.text);
}

void put_if_absent_keeps_the_first(Harness& h) {
  const Bytes first = make_bytes(3000, 8);
  h.create("once", first);
  const auto again = h.put("once", make_bytes(3000, 9));
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->outcome, PutOutcome::kAlreadyExists);
  h.expect_get("once", first);
  h.remove("once");
  const Bytes second = make_bytes(10, 10);
  h.create("once", second);
  h.expect_get("once", second);
}

void replace_creates_and_replaces(Harness& h) {
  for (const std::size_t size : {5000U, 10U, 70'000U}) {
    const Bytes body = make_bytes(size, size);
    const auto answer = h.put("replaced", body, PutMode::kReplace);
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->outcome, PutOutcome::kCreated);
    h.expect_get("replaced", body);
    EXPECT_EQ(h.head("replaced")->size_bytes, size);
  }
}

/// Of many bodies exactly one was created, and that one is read back.
void expect_one_winner(Harness& h, std::string_view name, const std::vector<Bytes>& bodies,
                       const std::vector<Result<PutAnswer>>& answers) {
  int created = 0;
  std::size_t winner = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i]) << answers[i].error().to_string();
    if (answers[i]->outcome == PutOutcome::kCreated) {
      ++created;
      winner = i;
    }
  }
  ASSERT_EQ(created, 1);
  h.expect_get(name, bodies[winner]);
}

void sixteen_racing_writers_create_once(Harness& h) {
  if (!h.store().traits().put_if_absent_is_atomic) {
    GTEST_SKIP() << "declared: put_if_absent_is_atomic is false";
  }
  for (int round = 0; round < 4; ++round) {
    const auto name = "race-" + std::to_string(round);
    std::vector<Bytes> bodies;
    std::vector<std::shared_ptr<Pending<PutAnswer>>> puts;
    for (std::uint64_t i = 0; i < 16; ++i) bodies.push_back(make_bytes(20'000, i));
    for (const Bytes& body : bodies) puts.push_back(h.start_put(name, body));
    std::vector<Result<PutAnswer>> answers;
    for (const auto& put : puts) answers.push_back(h.finish(put));
    expect_one_winner(h, name, bodies, answers);
  }
}

/// One loop a thread, and two clients of the same objects where there are two.
void writers_of_several_loops_create_once(Harness& h) {
  if (!h.store().traits().put_if_absent_is_atomic) {
    GTEST_SKIP() << "declared: put_if_absent_is_atomic is false";
  }
  constexpr std::size_t kWriters = 4;
  constexpr std::size_t kRounds = 20;
  std::vector<std::unique_ptr<LoopDriver>> drivers;
  for (std::size_t i = 0; i < kWriters; ++i) drivers.push_back(h.subject().another_driver());
  if (drivers[0] == nullptr) GTEST_SKIP() << "this store is tested on one loop";
  std::vector<Bytes> bodies;
  std::vector<std::vector<Result<PutAnswer>>> answers(kRounds,
                                                      std::vector<Result<PutAnswer>>(kWriters));
  for (std::size_t i = 0; i < kWriters; ++i) bodies.push_back(make_bytes(3000, i));
  ObjectStore* const other = h.subject().another_client();  // Each call may end the one before.
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kWriters; ++i) {
    threads.emplace_back([&, i] {
      Harness mine(h, i % 2 == 1 && other != nullptr ? *other : h.store(), *drivers[i]);
      for (std::size_t round = 0; round < kRounds; ++round) {
        answers[round][i] = mine.put("threads-" + std::to_string(round), bodies[i]);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t round = 0; round < kRounds; ++round) {
    expect_one_winner(h, "threads-" + std::to_string(round), bodies, answers[round]);
  }
}

void readers_beside_a_replacing_writer_see_whole_objects(Harness& h) {
  constexpr std::size_t kSize = 300'000;
  std::vector<Bytes> bodies;
  for (int i = 0; i < 12; ++i) bodies.emplace_back(kSize, static_cast<std::byte>(i));
  ASSERT_TRUE(h.put("hot", bodies[0], PutMode::kReplace));
  for (std::size_t round = 1; round < bodies.size(); ++round) {
    const auto put = h.start_put("hot", bodies[round], PutMode::kReplace);
    std::vector<std::shared_ptr<Reading>> readings;
    for (int i = 0; i < 4; ++i) readings.push_back(h.start_get("hot", {.length = kSize}));
    for (const auto& reading : readings) {
      const auto answer = h.finish(reading->call);
      if (!answer) {
        // Honest where a retry met another version.
        EXPECT_EQ(answer.error().code, ErrorCode::kConflict) << answer.error().to_string();
        continue;
      }
      ASSERT_EQ(answer->outcome, GetOutcome::kOk);
      const Bytes& memory = reading->memory;
      EXPECT_EQ(std::count(memory.begin(), memory.end(), memory[0]),
                static_cast<std::ptrdiff_t>(kSize))
          << "a mixture of two versions";
    }
    ASSERT_TRUE(h.finish(put));
  }
  h.expect_get("hot", bodies.back());
}

void several_loops_share_one_store(Harness& h) {
  std::vector<std::unique_ptr<LoopDriver>> drivers;
  for (int i = 0; i < 3; ++i) drivers.push_back(h.subject().another_driver());
  if (drivers[0] == nullptr) GTEST_SKIP() << "this store is tested on one loop";
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < drivers.size(); ++i) {
    threads.emplace_back([&, i] {
      Harness mine(h, h.store(), *drivers[i]);
      for (std::uint64_t j = 0; j < 30; ++j) {
        const auto name = "loops/" + std::to_string(i) + "/" + std::to_string(j);
        const Bytes body = make_bytes(5000, i * 100 + j);
        mine.create(name, body);
        mine.expect_get(name, body);
        if (j % 3 == 0) mine.remove(name);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto page = h.list({.prefix = h.prefix() + "loops/"});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->entries.size(), 60U);
}

void another_client_sees_the_same_objects(Harness& h) {
  ObjectStore* other = h.subject().another_client();
  if (other == nullptr) GTEST_SKIP() << "this store has one client";
  Harness theirs(h, *other, h.driver());
  const Bytes body = make_bytes(9000, 11);
  h.create("shared", body);
  theirs.expect_get("shared", body, {.version = h.head("shared")->version});
  theirs.remove("shared");
  EXPECT_FALSE(h.head("shared"));
}

void large_object(Harness& h) {
  const Bytes body = make_bytes(static_cast<std::size_t>(h.options().large_object_bytes), 12);
  h.create("large", body);
  h.expect_get("large", body);
  const Bytes tail(body.end() - 70'001, body.end());
  h.expect_get("large", tail, {.offset = body.size() - tail.size()});
}

void hundreds_of_reads_at_once(Harness& h) {
  const Bytes body = make_bytes(40'000, 13);
  h.create("busy", body);
  std::vector<std::shared_ptr<Reading>> readings;
  for (std::size_t i = 0; i < 300; ++i) {
    readings.push_back(h.start_get("busy", {.offset = i * 100, .length = 10'000}));
  }
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const auto answer = h.finish(readings[i]->call);
    ASSERT_TRUE(answer) << answer.error().to_string();
    ASSERT_EQ(answer->outcome, GetOutcome::kOk);
    EXPECT_EQ(std::memcmp(readings[i]->memory.data(), body.data() + i * 100, 10'000), 0);
  }
}

void remove_takes_away(Harness& h) {
  h.create("gone", make_bytes(10, 14));
  h.create("gone-not", make_bytes(10, 15));
  h.remove("gone");
  EXPECT_FALSE(h.head("gone"));
  EXPECT_TRUE(h.head("gone-not"));
  h.remove("gone");
}

void remove_many_takes_away_what_is_there(Harness& h) {
  std::vector<ObjectKey> keys;
  for (int i = 0; i < 20; ++i) {
    const auto name = "many/" + std::to_string(i);
    if (i % 2 == 0) h.create(name, make_bytes(10, 16));
    keys.push_back(h.key(name));
  }
  h.create("many-stays", make_bytes(10, 17));
  const auto failures = h.remove_many(keys);
  ASSERT_TRUE(failures) << failures.error().to_string();
  EXPECT_TRUE(failures->empty());
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(h.head("many/" + std::to_string(i)));
  EXPECT_TRUE(h.head("many-stays"));
  const auto none = h.remove_many({});
  ASSERT_TRUE(none) << none.error().to_string();
  EXPECT_TRUE(none->empty());
}

/// A flat namespace: a name may be an object and the start of longer ones.
void object_and_folder_of_one_name(Harness& h) {
  h.create("both", make_bytes(10, 18));
  h.create("both/inside", make_bytes(20, 19));
  h.create("deep/er/x", make_bytes(30, 20));
  h.create("deep/er", make_bytes(40, 21));
  EXPECT_EQ(h.head("both")->size_bytes, 10U);
  EXPECT_EQ(h.head("both/inside")->size_bytes, 20U);
  EXPECT_EQ(h.head("deep/er/x")->size_bytes, 30U);
  EXPECT_EQ(h.head("deep/er")->size_bytes, 40U);
  EXPECT_FALSE(h.head("deep"));
  const auto page = h.list({.prefix = h.prefix()});
  ASSERT_TRUE(page);
  std::vector<std::string> keys;
  for (const auto& info : page->entries) keys.push_back(info.key.text.substr(h.prefix().size()));
  EXPECT_EQ(keys, (std::vector<std::string>{"both", "both/inside", "deep/er", "deep/er/x"}));
  h.remove("both");
  EXPECT_TRUE(h.head("both/inside"));
}

}  // namespace

std::vector<Case> object_cases() {
  return {{"round_trip_of_many_sizes", round_trip_of_many_sizes},
          {"put_sends_scattered_memory", put_sends_scattered_memory},
          {"get_fills_segments_of_odd_sizes", get_fills_segments_of_odd_sizes},
          {"get_reads_exactly_the_range", get_reads_exactly_the_range},
          {"zero_length_object", zero_length_object},
          {"missing_is_a_value", missing_is_a_value},
          {"range_beyond_the_end_delivers_nothing", range_beyond_the_end_delivers_nothing},
          {"pinned_version_is_honoured", pinned_version_is_honoured},
          {"every_publication_has_its_own_version", every_publication_has_its_own_version},
          {"equal_bytes_published_again_have_a_new_version",
           equal_bytes_published_again_have_a_new_version},
          {"put_if_absent_keeps_the_first", put_if_absent_keeps_the_first},
          {"replace_creates_and_replaces", replace_creates_and_replaces},
          {"sixteen_racing_writers_create_once", sixteen_racing_writers_create_once},
          {"writers_of_several_loops_create_once", writers_of_several_loops_create_once},
          {"readers_beside_a_replacing_writer_see_whole_objects",
           readers_beside_a_replacing_writer_see_whole_objects},
          {"several_loops_share_one_store", several_loops_share_one_store},
          {"another_client_sees_the_same_objects", another_client_sees_the_same_objects},
          {"large_object", large_object},
          {"hundreds_of_reads_at_once", hundreds_of_reads_at_once},
          {"remove_takes_away", remove_takes_away},
          {"remove_many_takes_away_what_is_there", remove_many_takes_away_what_is_there},
          {"object_and_folder_of_one_name", object_and_folder_of_one_name}};
}

}  // namespace objectcache::store::conformance
