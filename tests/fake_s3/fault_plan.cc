#include "fake_s3/fault_plan.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace objectcache::fake_s3 {
namespace {

using K = FaultKind;
constexpr std::pair<FaultKind, std::string_view> kNames[] = {
    {K::kDelay, "delay"},
    {K::kStatus, "status"},
    {K::kRedirect, "redirect"},
    {K::kCloseUnanswered, "close_unanswered"},
    {K::kResetUnapplied, "reset_unapplied"},
    {K::kResetInRequest, "reset_in_request"},
    {K::kGarbage, "garbage"},
    {K::kStallUnanswered, "stall_unanswered"},
    {K::kOtherObject, "other_object"},
    {K::kIgnoreRange, "ignore_range"},
    {K::kReset, "reset"},
    {K::kTruncateBody, "truncate_body"},
    {K::kShortBody, "short_body"},
    {K::kOverlongBody, "overlong_body"},
    {K::kTrailingBytes, "trailing_bytes"},
    {K::kFlipBit, "flip_bit"},
    {K::kSlowBody, "slow_body"},
    {K::kStallAfterHead, "stall_after_head"},
    {K::kStallInBody, "stall_in_body"},
    {K::kBadContentRange, "bad_content_range"},
    {K::kNoContentRange, "no_content_range"},
    {K::kRangeAs200, "range_as_200"},
    {K::kNoEtag, "no_etag"},
    {K::kOtherEtag, "other_etag"},
    {K::kChunked, "chunked"},
    {K::kCloseAfter, "close_after"},
};

// A number in [0, 1) that depends on the arguments alone (splitmix64).
double fraction_of(std::uint64_t seed, std::uint64_t rule, std::uint64_t occurrence) {
  std::uint64_t x = seed + rule * 0x9e3779b97f4a7c15U + occurrence * 0xd1b54a32d192ed03U;
  for (const std::uint64_t factor : {0xbf58476d1ce4e5b9U, 0x94d049bb133111ebU}) {
    x = (x ^ (x >> 30)) * factor;
  }
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1.0p-53;
}

std::optional<FaultKind> kind_of(std::string_view name) {
  for (const auto& [kind, text] : kNames) {
    if (text == name) return kind;
  }
  return std::nullopt;
}

// Sets the field called `name`; false: there is none.
bool set_field(Fault& fault, const std::string& name, const nlohmann::json& value) {
  if (name == "method") {
    fault.method = value.get<std::string>();
  } else if (name == "key_contains") {
    fault.key_contains = value.get<std::string>();
  } else if (name == "first") {
    fault.first = value.get<std::uint64_t>();
  } else if (name == "times") {
    fault.times = value.get<std::uint64_t>();
  } else if (name == "probability") {
    fault.probability = value.get<double>();
  } else if (name == "status") {
    fault.status = value.get<int>();
  } else if (name == "s3_code") {
    fault.s3_code = value.get<std::string>();
  } else if (name == "region") {
    fault.region = value.get<std::string>();
  } else if (name == "text") {
    fault.text = value.get<std::string>();
  } else if (name == "retry_after_s") {
    fault.retry_after_s = value.get<int>();
  } else if (name == "bytes") {
    fault.bytes = value.get<std::uint64_t>();
  } else if (name == "delay_ms") {
    fault.delay = std::chrono::microseconds(static_cast<long>(value.get<double>() * 1000));
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string_view fault_kind_name(FaultKind kind) {
  for (const auto& [k, text] : kNames) {
    if (k == kind) return text;
  }
  return "unknown";
}

void FaultPlan::add(Fault fault) {
  const std::lock_guard lock(mutex_);
  rules_.push_back({.fault = std::move(fault), .index = ++rules_added_, .matched = 0});
}

void FaultPlan::clear() {
  const std::lock_guard lock(mutex_);
  rules_.clear();
}

std::vector<Fault> FaultPlan::take(std::string_view method, std::string_view bucket_and_key) {
  std::vector<Fault> out;
  const std::lock_guard lock(mutex_);
  for (Rule& rule : rules_) {
    const Fault& fault = rule.fault;
    if (!fault.method.empty() && fault.method != method) continue;
    if (bucket_and_key.find(fault.key_contains) == std::string_view::npos) continue;
    const std::uint64_t number = ++rule.matched;
    if (number < fault.first || number - fault.first >= fault.times) continue;
    if (fault.probability < 1.0 && fraction_of(seed_, rule.index, number) >= fault.probability) {
      continue;
    }
    ++injected_[fault.kind];
    out.push_back(fault);
  }
  return out;
}

std::uint64_t FaultPlan::injected(FaultKind kind) const {
  const std::lock_guard lock(mutex_);
  const auto it = injected_.find(kind);
  return it == injected_.end() ? 0 : it->second;
}

std::uint64_t FaultPlan::injected() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [kind, count] : injected_) sum += count;
  return sum;
}

Result<std::vector<Fault>> parse_faults(std::string_view json) {
  const auto bad = [](std::string why) {
    return fail(ErrorCode::kInvalidArgument, std::move(why), "read faults");
  };
  try {
    const auto list = nlohmann::json::parse(json);
    if (!list.is_array()) return bad("expected a list of objects");
    std::vector<Fault> out;
    for (const auto& object : list) {
      Fault& fault = out.emplace_back();
      bool has_kind = false;
      for (const auto& [name, value] : object.items()) {
        if (name == "kind") {
          const auto kind = kind_of(value.get<std::string>());
          if (!kind) return bad(fmt::format("unknown kind {}", value.dump()));
          fault.kind = *kind;
          has_kind = true;
        } else if (!set_field(fault, name, value)) {
          return bad(fmt::format("unknown field '{}'", name));
        }
      }
      if (!has_kind) return bad("a fault has no kind");
    }
    return out;
  } catch (const nlohmann::json::exception& e) {
    return bad(e.what());
  }
}

}  // namespace objectcache::fake_s3
