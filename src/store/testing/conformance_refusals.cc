// Cases about calls that are wrong: refused with a clear error, and nothing happens.

#include "store/testing/conformance_harness.h"

namespace objectcache::store::conformance {
namespace {

template <class T>
void expect_refused(const Result<T>& answer, std::string_view what) {
  ASSERT_FALSE(answer) << what;
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument)
      << what << ": " << answer.error().to_string();
  EXPECT_FALSE(answer.error().action.empty()) << what << ": no action";
  EXPECT_FALSE(answer.error().key.empty()) << what << ": no key";
  EXPECT_FALSE(answer.error().message.empty()) << what << ": no cause";
}

void bad_keys_are_refused_everywhere(Harness& h) {
  const std::string long_key(901, 'a');
  Bytes memory(10);
  for (const std::string& text :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("."),
        std::string(".."), std::string("a/../b"), std::string("a/./b"), std::string("a b"),
        std::string("a~"), std::string("a\0b", 3), std::string("\xc3\xa4"), long_key}) {
    const ObjectKey key{text};
    expect_refused(h.finish(h.start<GetAnswer>([&](GetCompletion done) {
      return h.store().get(h.loop(),
                           {.key = key,
                            .length = 10,
                            .destination = cut<Segment>(memory, {10}),
                            .deadline = h.deadline()},
                           std::move(done));
    })),
                   text);
    expect_refused(h.finish(h.start<PutAnswer>([&](PutCompletion done) {
      return h.store().put(
          h.loop(), {.key = key, .body = cut<ConstSegment>(memory, {10}), .deadline = h.deadline()},
          std::move(done));
    })),
                   text);
    expect_refused(h.finish(h.start<std::optional<ObjectInfo>>([&](HeadCompletion done) {
      return h.store().head(h.loop(), key, h.deadline(), std::move(done));
    })),
                   text);
    expect_refused(h.finish(h.start<void>([&](RemoveCompletion done) {
      return h.store().remove(h.loop(), key, h.deadline(), std::move(done));
    })),
                   text);
    expect_refused(h.remove_many({h.key("fine"), key}), text);
  }
}

void bad_ranges_and_destinations_are_refused(Harness& h) {
  h.create("object", make_bytes(100, 1));
  Bytes memory(100, std::byte{0xAA});
  const auto get = [&](std::uint64_t offset, std::uint64_t length, std::vector<Segment> segments) {
    return h.finish(h.start<GetAnswer>([&](GetCompletion done) {
      return h.store().get(h.loop(),
                           {.key = h.key("object"),
                            .offset = offset,
                            .length = length,
                            .destination = std::move(segments),
                            .deadline = h.deadline()},
                           std::move(done));
    }));
  };
  const Segment whole(memory);
  expect_refused(get(0, 0, {}), "no bytes");
  expect_refused(get(0, 50, {}), "no destination");
  expect_refused(get(0, 50, {whole.first(49)}), "destination too small");
  expect_refused(get(0, 50, {whole.first(51)}), "destination too large");
  expect_refused(get(0, 50, {whole.first(50), whole.first(0)}), "an empty segment");
  expect_refused(get(UINT64_MAX - 10, 50, {whole.first(50)}), "beyond 2^64");
  EXPECT_TRUE(memory == Bytes(100, std::byte{0xAA}));
}

void bad_listings_and_batches_are_refused(Harness& h) {
  expect_refused(h.list({.prefix = h.prefix(), .entries_max = 0}), "no entries");
  expect_refused(h.list({.prefix = h.prefix(), .entries_max = 1001}), "too many entries");
  expect_refused(h.list({.prefix = h.prefix(), .delimiter = 'x'}), "another delimiter");
  std::vector<ObjectKey> keys(1001, h.key("a"));
  expect_refused(h.remove_many(std::move(keys)), "too many keys");
}

void longest_keys(Harness& h) {
  const std::size_t component =
      std::min<std::size_t>(h.store().traits().key_component_bytes_max, 200);
  std::string name;
  while (h.prefix().size() + name.size() + component + 1 <= 900) {
    name += std::string(component, 'k') + "/";
  }
  const std::size_t left = 900 - h.prefix().size() - name.size();
  name = left == 0 ? name.substr(0, name.size() - 1) : name + std::string(left, 'z');
  const Bytes body = make_bytes(100, 2);
  h.create(name, body);
  h.expect_get(name, body);
  const auto page = h.list({.prefix = h.prefix()});
  ASSERT_TRUE(page && page->entries.size() == 1);
  EXPECT_EQ(page->entries[0].key, h.key(name));
  h.remove(name);
}

void longest_components(Harness& h) {
  const std::size_t declared = h.store().traits().key_component_bytes_max;
  const std::size_t room = 900 - h.prefix().size();
  const Bytes body = make_bytes(100, 3);
  const std::string longest(std::min(declared, room), 'c');
  h.create(longest, body);
  h.expect_get(longest, body);
  if (declared < room) expect_refused(h.put(longest + "c", body), "a component that is too long");
}

}  // namespace

std::vector<Case> refusal_cases() {
  return {{"bad_keys_are_refused_everywhere", bad_keys_are_refused_everywhere},
          {"bad_ranges_and_destinations_are_refused", bad_ranges_and_destinations_are_refused},
          {"bad_listings_and_batches_are_refused", bad_listings_and_batches_are_refused},
          {"longest_keys", longest_keys},
          {"longest_components", longest_components}};
}

}  // namespace objectcache::store::conformance
