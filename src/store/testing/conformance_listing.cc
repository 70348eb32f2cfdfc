// Cases about listings: order, pages, prefixes, roll-up.

#include "store/testing/conformance_harness.h"

namespace objectcache::store::conformance {
namespace {

/// Lists page by page and checks each page's own rules. Gives keys and common prefixes, without
/// the test's prefix, in the order in which they came.
std::vector<std::string> list_all(Harness& h, ListRequest request) {
  std::vector<std::string> out;
  for (int pages = 0;; ++pages) {
    const auto page = h.list(request);
    EXPECT_TRUE(page) << page.error().to_string();
    EXPECT_LT(pages, 3000) << "the listing does not end";
    if (!page || pages >= 3000) return out;
    EXPECT_LE(page->entries.size() + page->common_prefixes.size(), request.entries_max);
    std::vector<std::string> both = page->common_prefixes;
    for (const ObjectInfo& info : page->entries) both.push_back(info.key.text);
    const auto by_key = [](const ObjectInfo& a, const ObjectInfo& b) { return a.key < b.key; };
    EXPECT_TRUE(std::is_sorted(page->entries.begin(), page->entries.end(), by_key));
    EXPECT_TRUE(std::is_sorted(page->common_prefixes.begin(), page->common_prefixes.end()));
    std::sort(both.begin(), both.end());
    for (const std::string& name : both) {
      EXPECT_TRUE(name.starts_with(request.prefix)) << name;
      EXPECT_GT(name, request.start_after);
      out.push_back(name.substr(h.prefix().size()));
    }
    if (page->next_start_after.empty()) return out;
    EXPECT_FALSE(both.empty()) << "an empty page that is not the last";
    EXPECT_GT(page->next_start_after, request.start_after) << "the listing does not advance";
    request.start_after = page->next_start_after;
  }
}

void create_all(Harness& h, const std::vector<std::string>& names) {
  for (const std::string& name : names) h.create(name, make_bytes(name.size(), 1));
}

void pages_of_every_size_give_the_same(Harness& h) {
  std::vector<std::string> names = {"p/a",     "p/b/1", "p/b/2",   "p/b/3/x",
                                    "p/b/3/y", "p/c",   "p/d/e/f", "p/g"};
  create_all(h, names);
  create_all(h, {"o", "q/r"});
  for (const std::uint32_t entries_max : {1U, 2U, 3U, 7U, 8U, 9U, 1000U}) {
    EXPECT_EQ(list_all(h, {.prefix = h.prefix() + "p/", .entries_max = entries_max}), names)
        << entries_max;
  }
}

/// '-' and '.' sort before '/', digits and letters behind it: a walk of folders must not show.
void keys_come_in_byte_order(Harness& h) {
  std::vector<std::string> names = {"s/a",   "s/a-b",   "s/a-b/c", "s/a.b", "s/a/b",
                                    "s/a/z", "s/a0",    "s/a0/b",  "s/aA",  "s/a_/b",
                                    "s/ab",  "s/a-b.c", "s/A",     "s/A/b", "s/_"};
  create_all(h, names);
  std::sort(names.begin(), names.end());
  for (const std::uint32_t entries_max : {1U, 4U, 1000U}) {
    EXPECT_EQ(list_all(h, {.prefix = h.prefix() + "s/", .entries_max = entries_max}), names);
  }
}

void prefix_need_not_end_at_a_slash(Harness& h) {
  create_all(h, {"x/abc", "x/abd/1", "x/b", "xy"});
  const auto list = [&](std::string prefix) {
    return list_all(h, {.prefix = h.prefix() + std::move(prefix)});
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(list("x"), (Names{"x/abc", "x/abd/1", "x/b", "xy"}));
  EXPECT_EQ(list("x/ab"), (Names{"x/abc", "x/abd/1"}));
  EXPECT_EQ(list("x/abd"), (Names{"x/abd/1"}));
  EXPECT_EQ(list("x/abc"), (Names{"x/abc"}));
  EXPECT_EQ(list("x/abc/"), Names());
  EXPECT_EQ(list("nothing"), Names());
  EXPECT_EQ(list("x/abd/1/2"), Names());
}

void prefixes_that_no_key_can_have_are_empty(Harness& h) {
  create_all(h, {"k/a"});
  for (const auto* prefix : {"k//", "k/../", "k/./", "k/a~"}) {
    const auto page = h.list({.prefix = h.prefix() + prefix});
    ASSERT_TRUE(page) << prefix << ": " << page.error().to_string();
    EXPECT_TRUE(page->entries.empty()) << prefix;
    EXPECT_TRUE(page->next_start_after.empty()) << prefix;
  }
}

void start_after_is_exclusive(Harness& h) {
  create_all(h, {"m/a", "m/b/c", "m/b/d", "m/e"});
  const auto after = [&](std::string start) {
    return list_all(h, {.prefix = h.prefix() + "m/", .start_after = h.prefix() + std::move(start)});
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(after("m/a"), (Names{"m/b/c", "m/b/d", "m/e"}));
  EXPECT_EQ(after("m/a.gone"), (Names{"m/b/c", "m/b/d", "m/e"}));
  EXPECT_EQ(after("m/b"), (Names{"m/b/c", "m/b/d", "m/e"}));
  EXPECT_EQ(after("m/b/c"), (Names{"m/b/d", "m/e"}));
  EXPECT_EQ(after("m/b/c/more"), (Names{"m/b/d", "m/e"}));
  EXPECT_EQ(after("m/b/zzz"), (Names{"m/e"}));
  EXPECT_EQ(after("m/e"), Names());
  EXPECT_EQ(after("n"), Names());
  EXPECT_EQ(after("a"), (Names{"m/a", "m/b/c", "m/b/d", "m/e"}));
}

void delimiter_rolls_up_folders(Harness& h) {
  create_all(h, {"d/a", "d/b/1", "d/b/2/x", "d/c", "d/e/1", "d/f/g/h", "d/z"});
  const auto page = h.list({.prefix = h.prefix() + "d/", .delimiter = '/'});
  ASSERT_TRUE(page) << page.error().to_string();
  std::vector<std::string> keys;
  for (const auto& info : page->entries) keys.push_back(info.key.text);
  const std::string d = h.prefix() + "d/";
  EXPECT_EQ(keys, (std::vector<std::string>{d + "a", d + "c", d + "z"}));
  EXPECT_EQ(page->common_prefixes, (std::vector<std::string>{d + "b/", d + "e/", d + "f/"}));
  EXPECT_TRUE(page->next_start_after.empty());

  const std::vector<std::string> both = {"d/a", "d/b/", "d/c", "d/e/", "d/f/", "d/z"};
  for (const std::uint32_t entries_max : {1U, 2U, 4U, 6U, 1000U}) {
    EXPECT_EQ(list_all(h, {.prefix = d, .delimiter = '/', .entries_max = entries_max}), both)
        << entries_max;
  }
  EXPECT_EQ(list_all(h, {.prefix = d + "b", .delimiter = '/'}), (std::vector<std::string>{"d/b/"}));
  EXPECT_EQ(list_all(h, {.prefix = d + "b/", .delimiter = '/'}),
            (std::vector<std::string>{"d/b/1", "d/b/2/"}));
}

void emptied_folders_are_not_shown(Harness& h) {
  create_all(h, {"v/a/1", "v/b/c/2", "v/d/3"});
  h.remove("v/a/1");
  h.remove("v/b/c/2");
  EXPECT_EQ(list_all(h, {.prefix = h.prefix() + "v/", .delimiter = '/'}),
            (std::vector<std::string>{"v/d/"}));
  EXPECT_EQ(list_all(h, {.prefix = h.prefix() + "v/"}), (std::vector<std::string>{"v/d/3"}));
}

void entries_tell_size_and_version(Harness& h) {
  h.create("i/a", make_bytes(123, 2));
  h.create("i/b", {});
  const auto page = h.list({.prefix = h.prefix() + "i/"});
  ASSERT_TRUE(page && page->entries.size() == 2);
  EXPECT_EQ(page->entries[0].size_bytes, 123U);
  EXPECT_EQ(page->entries[1].size_bytes, 0U);
  EXPECT_EQ(page->entries[0].version, h.head("i/a")->version);
  EXPECT_GT(page->entries[0].modified.time_since_epoch().count(), 0);
  h.expect_get("i/a", make_bytes(123, 2), {.version = page->entries[0].version});
}

void more_keys_than_a_page(Harness& h) {
  const std::uint32_t count = h.options().listing_keys;
  const Bytes body = make_bytes(1, 1);
  std::vector<std::string> names;
  std::vector<std::shared_ptr<Pending<PutAnswer>>> puts;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string digits = std::to_string(i);
    digits.insert(0, 6 - digits.size(), '0');
    names.push_back("l/" + digits.substr(3) + "/" + digits);
    puts.push_back(h.start_put(names.back(), body));
    if (puts.size() == 64 || i + 1 == count) {
      for (const auto& put : puts) ASSERT_TRUE(h.finish(put)) << put->result->error().to_string();
      puts.clear();
    }
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(list_all(h, {.prefix = h.prefix() + "l/"}), names);
  EXPECT_EQ(list_all(h, {.prefix = h.prefix() + "l/", .entries_max = 333}), names);
  for (std::size_t i = 0; i < names.size(); i += 1000) {
    std::vector<ObjectKey> keys;
    for (std::size_t j = i; j < std::min(i + 1000, names.size()); ++j) {
      keys.push_back(h.key(names[j]));
    }
    const auto failures = h.remove_many(std::move(keys));
    ASSERT_TRUE(failures) << failures.error().to_string();
    EXPECT_TRUE(failures->empty());
  }
  EXPECT_EQ(list_all(h, {.prefix = h.prefix() + "l/"}), std::vector<std::string>());
}

}  // namespace

std::vector<Case> listing_cases() {
  return {{"pages_of_every_size_give_the_same", pages_of_every_size_give_the_same},
          {"keys_come_in_byte_order", keys_come_in_byte_order},
          {"prefix_need_not_end_at_a_slash", prefix_need_not_end_at_a_slash},
          {"prefixes_that_no_key_can_have_are_empty", prefixes_that_no_key_can_have_are_empty},
          {"start_after_is_exclusive", start_after_is_exclusive},
          {"delimiter_rolls_up_folders", delimiter_rolls_up_folders},
          {"emptied_folders_are_not_shown", emptied_folders_are_not_shown},
          {"entries_tell_size_and_version", entries_tell_size_and_version},
          {"more_keys_than_a_page", more_keys_than_a_page}};
}

}  // namespace objectcache::store::conformance
