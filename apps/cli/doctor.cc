#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocking.h"
#include "cli/open_view.h"
#include "store/object_store.h"

namespace objectcache::cli {
namespace {

enum class Verdict : std::uint8_t { kOk, kWarning, kFailed };

struct Finding {
  std::string check;
  Verdict verdict = Verdict::kOk;
  std::string text;
  std::string advice;  ///< What to do about it; empty where all is well.
};

std::string_view verdict_name(Verdict verdict) {
  static constexpr std::array<std::string_view, 3> kNames = {"ok", "warning", "FAILED"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string advice_for(const Error& error) {
  switch (error.code) {
    case ErrorCode::kPermissionDenied:
      return "check the credentials, and that their policy allows Get, Put, Delete and List here";
    case ErrorCode::kNotFound:
      return "create the bucket or directory, or mend its name in the URL";
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
      return "check endpoint, port, http or https, ca=FILE for a private CA, and that the server "
             "runs";
    case ErrorCode::kThrottled:
      return "the store asks for fewer requests: set requests_per_second, or ask its operator";
    case ErrorCode::kOutOfSpace:
      return "make room, or use another store";
    default:
      return "see the message";
  }
}

/// One store under examination; every call waits for its answer.
class Examination {
 public:
  explicit Examination(const OpenView& store)
      : store_(store), folder_(fmt::format(".objectcache-doctor-{:08x}", std::random_device{}())) {}

  const std::vector<Finding>& findings() const { return findings_; }
  void run(std::uint32_t megabytes) {
    check_transport();
    if (!check_reach() || !check_write()) return;
    check_read_back();
    check_clock();
    check_conditional_put();
    check_ranges();
    check_listing();
    check_latency();
    check_bandwidth(megabytes);
    check_delete();
  }

 private:
  using Bytes = std::vector<std::byte>;

  store::ObjectKey key(std::string_view name) const {
    return {fmt::format("{}/{}", folder_, name)};
  }
  TimePoint deadline() const { return store_.reactor->now() + store_.call_timeout; }
  template <class T, class Start>
  Result<T> call(Start start) const {
    return run_blocking<T>(*store_.reactor, deadline() + std::chrono::seconds(1), std::move(start));
  }
  Result<store::PutAnswer> put(store::ObjectKey at, const Bytes& body, store::PutMode mode) {
    if (std::ranges::find(written_, at) == written_.end()) written_.push_back(at);
    return call<store::PutAnswer>([&](auto done) {
      return store_.store->put(
          *store_.reactor,
          {.key = std::move(at), .body = {body}, .mode = mode, .deadline = deadline()},
          std::move(done));
    });
  }
  Result<store::GetAnswer> get(store::ObjectKey at, std::uint64_t offset, Bytes& into,
                               std::optional<store::ObjectVersion> version = {}) const {
    return call<store::GetAnswer>([&](auto done) {
      store::GetRequest request{.key = std::move(at),
                                .offset = offset,
                                .length = into.size(),
                                .destination = {Segment(into)},
                                .version = std::move(version),
                                .deadline = deadline()};
      return store_.store->get(*store_.reactor, std::move(request), std::move(done));
    });
  }
  static Bytes random_bytes(std::size_t size) {
    std::mt19937_64 random{size};
    Bytes out(size);
    for (std::size_t i = 0; i + 8 <= size; i += 8) {
      const std::uint64_t word = random();
      std::memcpy(out.data() + i, &word, 8);
    }
    return out;
  }

  void ok(std::string check, std::string text) {
    findings_.push_back({std::move(check), Verdict::kOk, std::move(text), {}});
  }
  void warn(std::string check, std::string text, std::string advice) {
    findings_.push_back({std::move(check), Verdict::kWarning, std::move(text), std::move(advice)});
  }
  void failed(std::string check, std::string text, std::string advice) {
    findings_.push_back({std::move(check), Verdict::kFailed, std::move(text), std::move(advice)});
  }
  void failed(std::string check, const Error& error) {
    failed(std::move(check), error.to_string(), advice_for(error));
  }

  void check_transport() {
    const std::string& url = store_.url;
    if (!url.starts_with("s3:")) return ok("transport", "local, no network");
    if (url.find("endpoint=http:") != std::string::npos ||
        url.find("endpoint=http%3A") != std::string::npos) {
      return warn("transport", "plain HTTP: KV is as sensitive as the prompts it came from",
                  "use an https endpoint outside of a trusted network");
    }
    ok("transport", "TLS");
  }
  bool check_reach() {
    const auto started = std::chrono::steady_clock::now();
    auto page = call<store::ListPage>([&](auto done) {
      return store_.store->list(
          *store_.reactor,
          {.prefix = folder_ + "/", .start_after = {}, .entries_max = 1, .deadline = deadline()},
          std::move(done));
    });
    if (!page) {
      failed("reach", page.error());
      return false;
    }
    ok("reach", fmt::format("the store answers; first contact took {}",
                            human_duration(std::chrono::steady_clock::now() - started)));
    return true;
  }
  bool check_write() {
    body_ = random_bytes(1 << 20);
    auto answer = put(key("probe"), body_, store::PutMode::kReplace);
    if (!answer) {
      failed("write", answer.error());
      return false;
    }
    version_ = answer->version;
    ok("write", "may put objects");
    return true;
  }
  void check_read_back() {
    Bytes back(body_.size());
    auto answer = get(key("probe"), 0, back);
    if (!answer) return failed("read", answer.error());
    if (answer->outcome != store::GetOutcome::kOk || back != body_) {
      return failed("read", "what was read back is not what was written",
                    "do not use this store; look for a proxy or cache in between");
    }
    version_ = answer->version;
    ok("read", "may get objects; 1 MiB came back as it was written");
  }
  void check_clock() {
    auto info = call<std::optional<store::ObjectInfo>>([&](auto done) {
      return store_.store->head(*store_.reactor, key("probe"), deadline(), std::move(done));
    });
    if (!info) return failed("clock", info.error());
    if (!*info)
      return failed("clock", "the object just written is not there",
                    "this store is not consistent");
    const auto skew = std::chrono::duration_cast<std::chrono::seconds>(
        (*info)->modified - std::chrono::system_clock::now());
    if (std::chrono::abs(skew) < std::chrono::seconds(60)) {
      return ok("clock",
                fmt::format("within {} s of the store's", std::chrono::abs(skew).count() + 1));
    }
    warn("clock", fmt::format("ours and the store's differ by {} s", skew.count()),
         "S3 refuses signatures that are 15 minutes off: run NTP on both");
  }
  void check_conditional_put() {
    const Bytes other = random_bytes(4096);
    auto first = put(key("once"), body_, store::PutMode::kIfAbsent);
    if (!first) return failed("conditional put", first.error());
    auto second = put(key("once"), other, store::PutMode::kIfAbsent);
    if (!second) return failed("conditional put", second.error());
    Bytes back(4096);
    auto answer = get(key("once"), 0, back);
    const bool kept = answer && answer->outcome == store::GetOutcome::kOk &&
                      std::ranges::equal(back, std::span(body_).first(4096));
    if (second->outcome != store::PutOutcome::kAlreadyExists || !kept) {
      return failed("conditional put", "an existing object was replaced",
                    "report this: it is a defect");
    }
    if (!store_.store->traits().put_if_absent_is_atomic) {
      return warn("conditional put",
                  "the server ignores If-None-Match: writers look before they put",
                  "two writers may race; that wastes bytes, it never mixes them");
    }
    ok("conditional put", "honoured");
  }
  void check_ranges() {
    Bytes part(70'000);
    auto answer = get(key("probe"), 123'457, part);
    if (!answer) return failed("ranges", answer.error());
    if (answer->outcome != store::GetOutcome::kOk ||
        !std::ranges::equal(part, std::span(body_).subspan(123'457, part.size()))) {
      return failed("ranges", "a range read gave other bytes", "this server or proxy breaks Range");
    }
    auto beyond = get(key("probe"), body_.size() - 10, part);
    if (!beyond) return failed("ranges", beyond.error());
    if (beyond->outcome != store::GetOutcome::kOutOfRange) {
      return failed("ranges", "a range beyond the end was answered",
                    "this server or proxy breaks Range");
    }
    auto pinned =
        get(key("probe"), 0, part, store::ObjectVersion{"\"00000000000000000000000000000000\""});
    if (!pinned) return failed("versions", pinned.error());
    if (pinned->outcome != store::GetOutcome::kVersionChanged) {
      return failed("versions", "another version than asked for was delivered",
                    "report this: it is a defect");
    }
    ok("ranges", "exact, also at the end of the object and for one version");
  }
  void check_listing() {
    auto page = call<store::ListPage>([&](auto done) {
      return store_.store->list(
          *store_.reactor, {.prefix = folder_ + "/", .start_after = {}, .deadline = deadline()},
          std::move(done));
    });
    if (!page) return failed("listing", page.error());
    const bool found =
        std::ranges::any_of(page->entries, [&](const auto& e) { return e.key == key("probe"); });
    if (!found) {
      return failed("listing", "an object just written is not listed",
                    "ls, verify and gc need a consistent listing");
    }
    ok("listing", "may list; what was written is there at once");
  }
  void check_latency() {
    std::vector<double> ms;
    Bytes one(1);
    for (int i = 0; i < 20; ++i) {
      const auto started = std::chrono::steady_clock::now();
      auto answer = get(key("probe"), 0, one);
      if (!answer) return failed("latency", answer.error());
      ms.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started)
              .count());
    }
    std::ranges::sort(ms);
    const std::string text = fmt::format(
        "a small range read takes {:.2f} ms (median), {:.2f} ms (worst of 20)", ms[10], ms.back());
    if (ms[10] < 50) return ok("latency", text);
    warn("latency", text, "short prefixes will not pay: see 'Advise' in docs/operating.md");
  }
  void check_bandwidth(std::uint32_t megabytes) {
    const Bytes block = random_bytes(8U << 20);
    const std::uint32_t count = std::max(1U, megabytes / 8);
    const auto write_started = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < count; ++i) {
      auto answer = put(key(fmt::format("block{}", i)), block, store::PutMode::kReplace);
      if (!answer) return failed("bandwidth", answer.error());
    }
    const auto read_started = std::chrono::steady_clock::now();
    std::atomic<std::uint32_t> next{0};
    std::atomic<bool> broken{false};
    const auto read = [&] {
      Bytes part(1U << 20);
      for (std::uint32_t i = next++; i < count * 8; i = next++) {
        auto answer = get(key(fmt::format("block{}", i / 8)), (i % 8) * part.size(), part);
        if (!answer || answer->outcome != store::GetOutcome::kOk) broken = true;
      }
    };
    {
      std::vector<std::jthread> readers;
      for (int i = 0; i < 8; ++i) readers.emplace_back(read);
    }
    if (broken)
      return failed("bandwidth", "some of 8 parallel reads failed", "see the server's log");
    const auto ended = std::chrono::steady_clock::now();
    const double bytes = static_cast<double>(count) * static_cast<double>(block.size());
    const double reading = bytes / std::chrono::duration<double>(ended - read_started).count();
    const double writing =
        bytes / std::chrono::duration<double>(read_started - write_started).count();
    ok("bandwidth", fmt::format("reads {} over 8 connections, writes {} over one",
                                human_rate(reading), human_rate(writing)));
  }
  void check_delete() {
    auto failures = call<std::vector<store::RemoveFailure>>([&](auto done) {
      return store_.store->remove_many(*store_.reactor, written_, deadline(), std::move(done));
    });
    if (!failures) return failed("delete", failures.error());
    if (!failures->empty()) return failed("delete", failures->front().error);
    ok("delete", "may delete; nothing of this check is left");
  }

  const OpenView& store_;
  const std::string folder_;
  Bytes body_;
  store::ObjectVersion version_;
  std::vector<store::ObjectKey> written_;
  std::vector<Finding> findings_;
};

}  // namespace

ExitCode run_doctor(const DoctorOptions& options, Console& console) {
  auto store = open_view(options.store);
  if (!store) return console.error(store.error());
  Examination examination(*store);
  examination.run(options.megabytes);
  Verdict worst = Verdict::kOk;
  auto rows = nlohmann::ordered_json::array();
  for (const Finding& finding : examination.findings()) {
    worst = std::max(worst, finding.verdict);
    console.line(
        fmt::format("{:<8} {:<16} {}", verdict_name(finding.verdict), finding.check, finding.text));
    if (!finding.advice.empty())
      console.line(fmt::format("{:<8} {:<16} -> {}", "", "", finding.advice));
    rows.push_back({{"check", finding.check},
                    {"verdict", verdict_name(finding.verdict)},
                    {"text", finding.text},
                    {"advice", finding.advice}});
  }
  console.document({{"url", store->store->traits().url}, {"checks", rows}});
  return worst == Verdict::kFailed ? ExitCode::kBadObjects : ExitCode::kOk;
}

}  // namespace objectcache::cli
