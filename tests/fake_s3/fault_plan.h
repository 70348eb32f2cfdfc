#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "objectcache/error.h"

namespace objectcache::fake_s3 {

enum class FaultKind : std::uint8_t {
  // Before the request is carried out: it has no effect.
  kDelay,            ///< Waits `delay`, then answers as usual.
  kStatus,           ///< Answers `status` (and `s3_code`, `retry_after`, `region`) instead.
  kRedirect,         ///< 301 or 307 (`status`) with `region` and the location `text`.
  kCloseUnanswered,  ///< Closes: what a client sees whose idle connection ended just then.
  kResetUnapplied,   ///< The same with RST.
  kResetInRequest,   ///< RST after `bytes` of the request's body were read.
  kGarbage,          ///< Answers bytes that are not HTTP, then closes.
  kStallUnanswered,  ///< Reads the request and never answers.
  kOtherObject,      ///< Serves the bytes of another object (`text`, or the next key) as if asked.
  kIgnoreRange,      ///< 200 with the whole object.
  // In the answer: the request has been carried out.
  kReset,         ///< RST after the head and `bytes` of the body.
  kTruncateBody,  ///< Right Content-Length, `bytes` of the body, then an orderly end.
  kShortBody,     ///< Content-Length smaller by `bytes` than Content-Range says; body as announced.
  kOverlongBody,  ///< Content-Length larger by `bytes` than asked, and as many bytes too many.
  kTrailingBytes,    ///< Right Content-Length, and `bytes` more bytes on the wire behind the body.
  kFlipBit,          ///< One bit of the body's byte `bytes` (modulo its size) is wrong.
  kSlowBody,         ///< The body in pieces of `bytes`, `delay` between them.
  kStallAfterHead,   ///< The head, then nothing.
  kStallInBody,      ///< The head and `bytes` of the body, then nothing.
  kBadContentRange,  ///< Content-Range is `text`, or one byte off if that is empty.
  kNoContentRange,   ///< 206 without Content-Range.
  kRangeAs200,       ///< The right part with the right Content-Range, but as 200.
  kNoEtag,           ///< Without ETag.
  kOtherEtag,        ///< ETag is `text`, or one that no object has.
  kChunked,          ///< Chunked transfer coding with chunks of `bytes` (64 KiB if 0).
  kCloseAfter,       ///< "Connection: close", and does.
};
/// "truncate_body" for kTruncateBody and so on.
[[nodiscard]] std::string_view fault_kind_name(FaultKind kind);

/// One rule of a plan: which requests it hits, and what it does to them. Each field says which
/// kinds use it above.
struct Fault {
  FaultKind kind = FaultKind::kDelay;

  std::string method{};        ///< Empty: any.
  std::string key_contains{};  ///< Substring of "bucket/key"; empty: any.
  std::uint64_t first = 1;     ///< Of the requests that match the two above, from this one on...
  std::uint64_t times = UINT64_MAX;  ///< ...this many in a row...
  double probability = 1.0;          ///< ...each with this probability.

  int status = 503;
  std::string s3_code{};
  std::string region{};
  std::string text{};
  int retry_after_s = -1;  ///< -1: no such header.
  std::uint64_t bytes = 0;
  std::chrono::microseconds delay{0};
};

/// What shall go wrong. Rules are looked at in the order in which they were added; all that hit a
/// request apply together, as far as that makes sense.
///
/// Whether the n-th matching request is hit depends on the seed, the rule and n alone, so that a
/// run with one connection repeats exactly.
///
/// Threads: any.
class FaultPlan {
 public:
  explicit FaultPlan(std::uint64_t seed = 1) : seed_(seed) {}

  void add(Fault fault);
  void clear();
  /// Faults of this request. Counts it.
  [[nodiscard]] std::vector<Fault> take(std::string_view method, std::string_view bucket_and_key);
  /// How many faults of that kind, or of all kinds, were handed out.
  [[nodiscard]] std::uint64_t injected(FaultKind kind) const;
  [[nodiscard]] std::uint64_t injected() const;

 private:
  struct Rule {
    Fault fault;
    std::uint64_t index = 0;
    std::uint64_t matched = 0;
  };

  const std::uint64_t seed_;
  mutable std::mutex mutex_;
  std::vector<Rule> rules_;
  std::uint64_t rules_added_ = 0;
  std::map<FaultKind, std::uint64_t> injected_;
};

/// Reads `[{"kind": "status", "status": 503, "s3_code": "SlowDown", "probability": 0.1}, ...]`; the
/// names are those of Fault's fields, "delay_ms" for the delay. Unknown names are refused.
[[nodiscard]] Result<std::vector<Fault>> parse_faults(std::string_view json);

}  // namespace objectcache::fake_s3
