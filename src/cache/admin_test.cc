#include "cache/admin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "base/blocking.h"
#include "base/thread_event_loop.h"
#include "cache/verify.h"
#include "digest/crc32c.h"
#include "format/chunk_header.h"
#include "format/example_namespace.h"
#include "store/memory/memory_store.h"

namespace objectcache::cache {
namespace {

/// A memory store on a loop of its own, filled object by object.
class AdminTest : public testing::Test {
 protected:
  AdminTest() : thread_([this] { loop_.run(); }) {
    std::promise<void> running;  // Until then the loop belongs to this thread.
    loop_.post([&running] { running.set_value(); });
    running.get_future().wait();
  }
  ~AdminTest() override {
    loop_.stop();
    thread_.join();
  }

  void put(const std::string& key, std::span<const std::byte> body) {
    const TimePoint deadline = loop_.now() + std::chrono::seconds(5);
    auto done = run_blocking<store::PutAnswer>(loop_, deadline, [&](auto completion) {
      store::PutRequest request{
          .key = {key}, .body = {body}, .mode = store::PutMode::kReplace, .deadline = deadline};
      return store_.put(loop_, std::move(request), std::move(completion));
    });
    ASSERT_TRUE(done.has_value()) << done.error().to_string();
  }
  void put_text(const std::string& key, std::string_view text) {
    put(key, std::as_bytes(std::span(text)));
  }

  /// The bytes of all objects of a chunk, header right, slices filled with `fill`.
  std::vector<std::vector<std::byte>> chunk_objects(const ChunkKey& key, std::byte fill) {
    format::ChunkHeader header{.name = digest_,
                               .shard = {},
                               .key = key,
                               .parent = {},
                               .created_unix_ms = 1,
                               .unit_keys = {},
                               .records = {}};
    for (std::uint32_t u = 0; u < layout_.units(); ++u) {
      header.unit_keys.push_back({key.bytes});
      if (u + 1 < layout_.units()) header.unit_keys.back().bytes[0] ^= std::byte{0xff};
    }
    std::vector<std::vector<std::byte>> objects(layout_.object_count());
    for (std::uint32_t o = 0; o < objects.size(); ++o)
      objects[o].assign(layout_.object_bytes(o), fill);
    for (std::uint32_t l = 0; l < layout_.layers(); ++l) {
      for (std::uint32_t u = 0; u < layout_.units(); ++u) {
        const std::vector<std::byte> unit(layout_.unit_bytes(l), fill);
        header.records.push_back({.stored_bytes = static_cast<std::uint32_t>(unit.size()),
                                  .crc32c = digest::crc32c(unit)});
      }
    }
    EXPECT_TRUE(
        format::encode_header(layout_, header, Segment(objects[0]).first(layout_.header_bytes())));
    return objects;
  }
  void put_chunk(const ChunkKey& key) {
    const auto objects = chunk_objects(key, key.bytes[0]);
    for (std::uint32_t o = 0; o < objects.size(); ++o) put(names_.object(key, {}, o), objects[o]);
  }
  void use(NamespaceSpec spec) {
    spec_ = std::move(spec);
    digest_ = namespace_digest(spec_).value();
    layout_ = format::ChunkLayout::create(spec_).value();
    names_ = format::ObjectNames::create("", "acme", digest_).value();
    hex_ = digest_.hex().substr(0, 32);
    put_text(names_.namespace_json(), canonical_json(spec_).value());
  }
  static ChunkKey key_of(int n) {
    ChunkKey key;
    key.bytes.fill(static_cast<std::byte>(n));
    return key;
  }
  VerifyReport verify(bool repair = false) {
    auto report =
        verify_namespace(view_, "acme", hex_, {.parallel = 3, .repair = repair, .progress = {}});
    EXPECT_TRUE(report.has_value()) << report.error().to_string();
    return report.value_or(VerifyReport{});
  }

  ThreadEventLoop loop_;
  std::thread thread_;
  store::MemoryStore store_;
  StoreView view_{.loop = loop_, .store = store_};
  NamespaceSpec spec_;
  NamespaceDigest digest_;
  format::ChunkLayout layout_ = format::ChunkLayout::create(format::example_namespace()).value();
  format::ObjectNames names_ = format::ObjectNames::create("", "acme", {}).value();
  std::string hex_;
};

NamespaceSpec small(ObjectLayout object_layout) {
  NamespaceSpec spec = format::example_namespace();
  spec.layers = 3;
  spec.bytes_per_token = {8, 16, 4};
  spec.engine_block_tokens = 16;
  spec.unit_tokens = 64;
  spec.chunk_tokens = 128;
  spec.object_layout = object_layout;
  return spec;
}

TEST_F(AdminTest, ListsTenantsAndNamespaces) {
  use(small(ObjectLayout::kChunk));
  put_text("other/0123456789abcdef0123456789abcdef/namespace.json", "{}");
  put_text("other/notes/readme", "x");
  put_text("Not_A_Tenant/x", "x");
  EXPECT_EQ(list_tenants(view_).value(), (std::vector<std::string>{"acme", "other"}));
  EXPECT_EQ(list_namespaces(view_, "acme").value(), std::vector<std::string>{hex_});
  EXPECT_EQ(list_namespaces(view_, "other").value(),
            std::vector<std::string>{"0123456789abcdef0123456789abcdef"});
  EXPECT_TRUE(list_namespaces(view_, "nobody").value().empty());
}

TEST_F(AdminTest, ReadsANamespaceOnlyUnderItsOwnName) {
  use(small(ObjectLayout::kChunk));
  EXPECT_EQ(read_namespace(view_, "acme", hex_).value(), spec_);
  const std::string foreign = "00000000000000000000000000000000";
  put_text("acme/" + foreign + "/namespace.json", canonical_json(spec_).value());
  EXPECT_EQ(read_namespace(view_, "acme", foreign).error().code, ErrorCode::kIncompatible);
  put_text("acme/" + foreign + "/namespace.json", "{");
  EXPECT_EQ(read_namespace(view_, "acme", foreign).error().code, ErrorCode::kCorrupt);
  put_text("acme/" + foreign + "/namespace.json", "");
  EXPECT_EQ(read_namespace(view_, "acme", foreign).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(read_namespace(view_, "nobody", hex_).error().code, ErrorCode::kNotFound);
}

TEST_F(AdminTest, MeasuresByShard) {
  use(small(ObjectLayout::kLayer));
  put_chunk(key_of(1));
  put_chunk(key_of(2));
  const auto objects = chunk_objects(key_of(3), std::byte{3});
  put(names_.object(key_of(3), Shard{.tp_rank = 1, .tp_size = 2}, 0), objects[0]);
  put_text(names_.namespace_prefix() + "stray", "12345");
  const auto usage = measure_namespace(view_, "acme", hex_).value();
  EXPECT_EQ(usage.shards.at("tp0of1-pp0of1").chunks, 2U);
  EXPECT_EQ(usage.shards.at("tp0of1-pp0of1").objects, 6U);
  EXPECT_EQ(usage.shards.at("tp0of1-pp0of1").bytes,
            2 * (layout_.payload_bytes() + layout_.header_bytes()));
  EXPECT_EQ(usage.shards.at("tp1of2-pp0of1").chunks, 1U);
  EXPECT_EQ(usage.objects, 9U);
  EXPECT_EQ(usage.foreign_objects, 1U);
}

class VerifyTest : public AdminTest, public testing::WithParamInterface<ObjectLayout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, VerifyTest,
                         testing::Values(ObjectLayout::kChunk, ObjectLayout::kLayer));

TEST_P(VerifyTest, FindsNothingWrongWithGoodChunks) {
  use(small(GetParam()));
  for (int n = 1; n <= 200; ++n) put_chunk(key_of(n));
  const VerifyReport report = verify();
  EXPECT_EQ(report.chunks, 200U);
  EXPECT_EQ(report.bytes, 200 * (layout_.payload_bytes() + layout_.header_bytes()));
  EXPECT_TRUE(report.bad.empty());
}

TEST_P(VerifyTest, NamesTheObjectOfEveryFlippedByte) {
  use(small(GetParam()));
  put_chunk(key_of(1));
  const auto good = chunk_objects(key_of(2), std::byte{2});
  for (std::uint32_t o = 0; o < good.size(); ++o) {
    for (std::size_t at = 0; at < good[o].size(); at += at < 600 ? 7 : 97) {
      auto objects = good;
      objects[o][at] ^= std::byte{1};
      for (std::uint32_t i = 0; i < objects.size(); ++i) {
        put(names_.object(key_of(2), {}, i), objects[i]);
      }
      const VerifyReport report = verify();
      // Padding of the header carries no information of its own, but its CRC covers it.
      ASSERT_EQ(report.bad.size(), 1U) << "object " << o << ", byte " << at;
      EXPECT_EQ(report.bad[0].key.text, names_.object(key_of(2), {}, o)) << at;
    }
  }
}

TEST_P(VerifyTest, FindsSwappedShortLongAndEmptyObjects) {
  use(small(GetParam()));
  const auto one = chunk_objects(key_of(1), std::byte{1});
  put(names_.object(key_of(2), {}), one[0]);
  for (std::uint32_t o = 1; o < one.size(); ++o) put(names_.object(key_of(2), {}, o), one[o]);
  EXPECT_EQ(verify().bad.at(0).error.code, ErrorCode::kIncompatible);
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, one[0].size() + 1}) {
    auto other = one[0];
    other.resize(size);
    put(names_.object(key_of(2), {}), other);
    const VerifyReport report = verify();
    ASSERT_EQ(report.bad.size(), 1U) << size;
    EXPECT_EQ(report.bad[0].error.code, ErrorCode::kCorrupt);
  }
}

TEST_P(VerifyTest, RepairRemovesWhatIsBadAndNothingElse) {
  use(small(GetParam()));
  put_chunk(key_of(1));
  put_text(names_.object(key_of(2), {}), "junk");
  put_text(names_.namespace_prefix() + "stray", "junk");
  const VerifyReport report = verify(true);
  EXPECT_EQ(report.bad.size(), 2U);
  EXPECT_TRUE(std::ranges::all_of(report.bad, &BadObject::removed));
  EXPECT_TRUE(verify().bad.empty());
  EXPECT_EQ(measure_namespace(view_, "acme", hex_)->shards.at("tp0of1-pp0of1").chunks, 1U);
}

TEST_F(AdminTest, VerifyFindsLayersWithoutTheirMainObject) {
  use(small(ObjectLayout::kLayer));
  const auto objects = chunk_objects(key_of(1), std::byte{1});
  put(names_.object(key_of(1), {}, 1), objects[1]);
  ASSERT_EQ(verify().bad.size(), 1U);
  put(names_.object(key_of(1), {}, 0), objects[0]);
  const VerifyReport report = verify();
  ASSERT_EQ(report.bad.size(), 1U);
  EXPECT_EQ(report.bad[0].key.text, names_.object(key_of(1), {}, 0));
}

TEST_F(AdminTest, VerifyNeedsTheNamespaceFile) {
  EXPECT_EQ(verify_namespace(view_, "acme", std::string(32, '0'), {}).error().code,
            ErrorCode::kNotFound);
}

TEST_F(AdminTest, RemovesEverythingUnderAPrefix) {
  use(small(ObjectLayout::kLayer));
  for (int n = 1; n <= 5; ++n) put_chunk(key_of(n));
  const auto planned = remove_under(view_, names_.namespace_prefix(), true).value();
  EXPECT_EQ(planned.objects, 16U);
  EXPECT_EQ(measure_namespace(view_, "acme", hex_)->objects, 16U) << "a dry run removes nothing";
  const auto removed = remove_under(view_, names_.namespace_prefix(), false).value();
  EXPECT_EQ(removed.objects, 16U);
  EXPECT_EQ(removed.bytes, planned.bytes);
  EXPECT_TRUE(removed.failures.empty());
  EXPECT_TRUE(list_tenants(view_).value().empty());
}

TEST_F(AdminTest, RemovesChunksOfAPrefixAndNoOthers) {
  use(small(ObjectLayout::kChunk));
  for (int n = 1; n <= 3; ++n) put_chunk(key_of(n));
  const std::vector<ChunkKey> tail = {key_of(2), key_of(3)};
  EXPECT_EQ(remove_chunks(view_, names_, tail, false).value().objects, 2U);
  EXPECT_EQ(verify().chunks, 1U);
}

}  // namespace
}  // namespace objectcache::cache
