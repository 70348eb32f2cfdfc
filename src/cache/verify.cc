#include "cache/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/blocking.h"
#include "format/chunk_header.h"
#include "format/chunk_layout.h"

namespace objectcache::cache {
namespace {

constexpr std::uint64_t kReadBytes = 8U << 20;

/// The objects that hold one shard of one chunk, ascending by layer.
struct ChunkObjects {
  ChunkKey chunk;
  Shard shard;
  std::vector<std::pair<std::uint32_t, store::ObjectInfo>> objects;
};

/// What is known of the namespace; shared by the threads.
struct Subject {
  const StoreView& view;
  NamespaceDigest digest;
  format::ChunkLayout layout;
};

/// Checks one chunk. `Gone`: it was removed meanwhile.
class ChunkCheck {
 public:
  ChunkCheck(const Subject& subject, const ChunkObjects& chunk)
      : subject_(subject), chunk_(chunk) {}

  /// An Error: the store failed. Else the bad objects, empty if all is well.
  Result<std::vector<BadObject>> run() {
    check_sizes();
    if (!bad_.empty()) return std::move(bad_);
    if (auto ok = check_header(); !ok || stop_) return end(ok);
    const format::ChunkLayout& layout = subject_.layout;
    for (std::uint32_t layer = 0; layer < layout.layers();) {
      std::uint32_t count = 1;
      std::uint64_t bytes = layout.slice_bytes(layer);
      while (count < layout.layers_per_range_max(layer) &&
             bytes + layout.slice_bytes(layer + count) <= kReadBytes) {
        bytes += layout.slice_bytes(layer + count++);
      }
      if (auto ok = check_layers(layer, count, bytes); !ok || stop_) return end(ok);
      layer += count;
    }
    return std::move(bad_);
  }
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  Result<std::vector<BadObject>> end(Result<void>& ok) {
    if (!ok) return std::unexpected(std::move(ok.error()));
    return std::move(bad_);
  }
  void add_bad(const store::ObjectKey& key, ErrorCode code, std::string message) {
    bad_.push_back({.key = key,
                    .error = fail(code, std::move(message), "verify", key.text).error(),
                    .removed = false});
  }
  [[nodiscard]] const store::ObjectInfo& object(std::uint32_t object_layer) const {
    return chunk_.objects[object_layer].second;
  }

  void check_sizes() {
    const std::uint32_t expected = subject_.layout.object_count();
    if (chunk_.objects.front().first != 0) {
      for (const auto& [layer, info] : chunk_.objects) {
        add_bad(info.key, ErrorCode::kCorrupt,
                "a layer without its main object, which has the header");
      }
      return;
    }
    if (chunk_.objects.size() != expected || chunk_.objects.back().first != expected - 1) {
      return add_bad(
          object(0).key, ErrorCode::kCorrupt,
          fmt::format("{} of its {} objects are there", chunk_.objects.size(), expected));
    }
    for (const auto& [layer, info] : chunk_.objects) {
      const std::uint64_t bytes = subject_.layout.object_bytes(layer);
      if (info.size_bytes == bytes) continue;
      add_bad(info.key, ErrorCode::kCorrupt,
              fmt::format("it has {} bytes, its namespace says {}", info.size_bytes, bytes));
    }
  }

  /// Reads a range of the version that was listed; stop_ is set when there is nothing to check.
  Result<void> read(const format::ByteRange& range) {
    const store::ObjectInfo& info = object(range.object_layer);
    buffer_.resize(range.length);
    const TimePoint deadline = subject_.view.loop.now() + subject_.view.call_timeout;
    auto answer = run_blocking<store::GetAnswer>(
        subject_.view.loop, deadline + std::chrono::seconds(1), [&](auto done) {
          store::GetRequest request{.key = info.key,
                                    .offset = range.offset,
                                    .length = range.length,
                                    .destination = {Segment(buffer_)},
                                    .version = info.version,
                                    .deadline = deadline};
          return subject_.view.store.get(subject_.view.loop, std::move(request), std::move(done));
        });
    if (!answer) return std::unexpected(std::move(answer.error()));
    stop_ = answer->outcome != store::GetOutcome::kOk;
    if (answer->outcome == store::GetOutcome::kOutOfRange) {
      add_bad(info.key, ErrorCode::kCorrupt, "it is shorter than its listing says");
    }
    bytes_read_ += stop_ ? 0 : range.length;
    return {};
  }

  Result<void> check_header() {
    if (auto ok = read(subject_.layout.header_range()); !ok || stop_) return ok;
    auto header = format::decode_header(
        subject_.layout, buffer_,
        {.name = subject_.digest, .shard = chunk_.shard, .key = chunk_.chunk, .parent = {}});
    if (header) {
      header_ = std::move(*header);
      return {};
    }
    stop_ = true;
    add_bad(object(0).key, header.error().code, header.error().message);
    return {};
  }

  Result<void> check_layers(std::uint32_t first, std::uint32_t count, std::uint64_t bytes) {
    const format::ChunkLayout& layout = subject_.layout;
    const std::uint32_t object_layer = layout.object_count() == 1 ? 0 : first;
    const format::ByteRange range{
        .object_layer = object_layer, .offset = layout.slice_offset(first), .length = bytes};
    if (auto ok = read(range); !ok || stop_) return ok;
    std::uint64_t at = 0;
    for (std::uint32_t layer = first; layer < first + count; ++layer) {
      for (std::uint32_t unit = 0; unit < layout.units(); ++unit) {
        const ConstSegment stored = ConstSegment(buffer_).subspan(at, layout.unit_bytes(layer));
        at += stored.size();
        if (auto ok = format::verify_unit(layout, header_, layer, unit, stored); !ok) {
          stop_ = true;
          add_bad(object(object_layer).key, ok.error().code,
                  fmt::format("bytes {} to {} of the object: {}", range.offset + at - stored.size(),
                              range.offset + at, ok.error().message));
          return {};
        }
      }
    }
    return {};
  }

  const Subject& subject_;
  const ChunkObjects& chunk_;
  format::ChunkHeader header_;
  std::vector<std::byte> buffer_;
  std::vector<BadObject> bad_;
  std::uint64_t bytes_read_ = 0;
  bool stop_ = false;
};

/// Collects listed objects into chunks and checks them, some at a time, on several threads.
class Verifier {
 public:
  Verifier(const Subject& subject, const VerifyOptions& options)
      : subject_(subject), options_(options) {}

  Result<void> add(const store::ObjectInfo& info, const std::string& description_key) {
    if (info.key.text == description_key) return {};
    const auto parsed = format::parse_object_name("", info.key.text);
    if (!parsed) {
      report_.bad.push_back(
          {.key = info.key,
           .error = fail(ErrorCode::kIncompatible, "its name is not of this format", "verify",
                         info.key.text)
                        .error(),
           .removed = false});
      return {};
    }
    const bool same = !pending_.empty() && pending_.back().chunk == parsed->chunk &&
                      pending_.back().shard == parsed->shard;
    if (!same) {
      if (pending_.size() >= kBatch) {
        if (auto ok = check_pending(); !ok) return ok;
      }
      pending_.push_back({.chunk = parsed->chunk, .shard = parsed->shard, .objects = {}});
    }
    pending_.back().objects.emplace_back(parsed->object_layer, info);
    return {};
  }

  Result<void> check_pending() {
    std::atomic<std::size_t> next{0};
    std::optional<Error> failure;
    const auto work = [&] {
      for (std::size_t i = next++; i < pending_.size(); i = next++) {
        ChunkCheck check(subject_, pending_[i]);
        auto bad = check.run();
        const std::lock_guard lock(mutex_);
        if (!bad) {
          if (!failure) failure = std::move(bad.error());
          next = pending_.size();
          return;
        }
        ++report_.chunks;
        report_.bytes += check.bytes_read();
        std::ranges::move(*bad, std::back_inserter(report_.bad));
        if (options_.progress) options_.progress(report_);
      }
    };
    {
      std::vector<std::jthread> threads;
      const std::size_t count =
          std::min<std::size_t>(std::max(options_.parallel, 1U), pending_.size());
      for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work);
      if (!pending_.empty()) work();
    }
    pending_.clear();
    if (failure) return std::unexpected(std::move(*failure));
    return {};
  }

  Result<VerifyReport> finish() {
    if (auto ok = check_pending(); !ok) return std::unexpected(std::move(ok.error()));
    std::ranges::sort(report_.bad, {}, [](const BadObject& b) { return b.key.text; });
    if (!options_.repair) return std::move(report_);
    for (BadObject& bad : report_.bad) {
      const TimePoint deadline = subject_.view.loop.now() + subject_.view.call_timeout;
      auto removed = run_blocking<void>(
          subject_.view.loop, deadline + std::chrono::seconds(1), [&](auto done) {
            return subject_.view.store.remove(subject_.view.loop, bad.key, deadline,
                                              std::move(done));
          });
      if (!removed) return std::unexpected(std::move(removed.error()));
      bad.removed = true;
    }
    return std::move(report_);
  }

 private:
  static constexpr std::size_t kBatch = 64;

  const Subject& subject_;
  const VerifyOptions& options_;
  std::vector<ChunkObjects> pending_;
  std::mutex mutex_;  // Guards report_ and the failure while threads run.
  VerifyReport report_;
};

}  // namespace

Result<VerifyReport> verify_namespace(const StoreView& view, std::string_view tenant,
                                      std::string_view namespace_hex,
                                      const VerifyOptions& options) {
  auto spec = read_namespace(view, tenant, namespace_hex);
  if (!spec) return std::unexpected(std::move(spec.error()));
  auto digest = namespace_digest(*spec);
  if (!digest) return std::unexpected(std::move(digest.error()));
  auto layout = format::ChunkLayout::create(*spec);
  if (!layout) return std::unexpected(std::move(layout.error()));

  const Subject subject{.view = view, .digest = *digest, .layout = std::move(*layout)};
  const std::string prefix = namespace_prefix(tenant, namespace_hex);
  const std::string description_key = prefix + "namespace.json";
  Verifier verifier(subject, options);
  auto walked = for_each_object(view, prefix, [&](const store::ObjectInfo& info) {
    return verifier.add(info, description_key);
  });
  if (!walked) return std::unexpected(std::move(walked.error()));
  return verifier.finish();
}

}  // namespace objectcache::cache
