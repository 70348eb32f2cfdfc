#include "fake_s3/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "digest/hex.h"
#include "digest/sha256.h"
#include "fake_s3/delivery.h"
#include "s3/http_date.h"
#include "s3/xml.h"

namespace objectcache::fake_s3 {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

const Fault* find_fault(const std::vector<Fault>& faults, FaultKind kind) {
  const auto it = std::ranges::find(faults, kind, &Fault::kind);
  return it == faults.end() ? nullptr : &*it;
}

int status_of(s3::CheckFailure failure) {
  using F = s3::CheckFailure;
  const bool is_form = failure == F::kMalformed || failure == F::kWrongScope ||
                       failure == F::kExpiredToken || failure == F::kBadToken;
  return is_form ? 400 : 403;
}

Answer check_answer(const s3::CheckProblem& problem, const std::string& region,
                    system_clock::time_point now) {
  s3::ErrorDocument document;
  document.code = s3::s3_code_of(problem.failure);
  document.message = problem.message;
  if (problem.failure == s3::CheckFailure::kWrongScope) document.region = region;
  if (problem.failure == s3::CheckFailure::kClockSkew) {
    document.server_time = s3::format_iso8601(now);
  }
  Answer out;
  out.status = status_of(problem.failure);
  out.set_header("Content-Type", "application/xml");
  out.text = s3::write_error_document(document);
  return out;
}

// The code that S3 would give, where a test names a status only.
std::string_view usual_code(int status) {
  switch (status) {
    case 403:
      return "AccessDenied";
    case 429:
      return "TooManyRequests";
    case 500:
      return "InternalError";
    case 503:
      return "SlowDown";
    case 507:
      return "InsufficientStorage";
    default:
      return "ScriptedFault";
  }
}

Answer scripted_answer(const Fault& fault, system_clock::time_point now) {
  s3::ErrorDocument document;
  document.code = fault.s3_code.empty() ? usual_code(fault.status) : fault.s3_code;
  document.message = "a scripted fault";
  document.region = fault.region;
  Answer out;
  out.status = fault.status;
  if (fault.kind == FaultKind::kRedirect) {
    if (out.status != 307) out.status = 301;
    if (fault.s3_code.empty()) {
      document.code = out.status == 307 ? "TemporaryRedirect" : "PermanentRedirect";
    }
    out.set_header("Location", fault.text);
  }
  if (!fault.region.empty()) out.set_header("x-amz-bucket-region", fault.region);
  if (document.code == "RequestTimeTooSkewed") document.server_time = s3::format_iso8601(now);
  if (fault.retry_after_s >= 0) {
    out.set_header("Retry-After", fmt::to_string(fault.retry_after_s));
  }
  out.set_header("Content-Type", "application/xml");
  out.text = s3::write_error_document(document);
  return out;
}

}  // namespace

std::optional<std::string_view> RequestRecord::header(std::string_view name) const {
  for (const auto& [n, value] : headers) {
    if (std::ranges::equal(n, name, {}, lower, lower)) return value;
  }
  return std::nullopt;
}

Session::Session(SharedState& shared, Wire& wire, std::uint64_t connection)
    : shared_(shared),
      wire_(wire),
      connection_(connection),
      reader_(wire, {.body_bytes_max = shared.options.object_bytes_max + 1}),
      checker_({.region = shared.options.region},
               [this](std::string_view id) { return find_credentials(id); }) {}

void Session::run() {
  while (serve_one()) {
  }
  wire_.close();
}

bool Session::serve_one() {
  WireRequest request;
  auto outcome = reader_.read_head(request);
  if (outcome == RequestReader::Outcome::kEnd) return false;
  request_id_ = fmt::format("fake{:012x}", ++shared_.requests_total);
  if (outcome != RequestReader::Outcome::kRequest) return refuse_wire(outcome);

  const auto arrived = steady_clock::now();
  const auto route = route_of(request, shared_.rules);
  const std::string name = route ? fmt::format("{}/{}", route->bucket, route->key) : std::string();
  const auto faults = shared_.faults.take(request.method, name);
  const std::size_t record = start_record(request, arrived, faults);

  if (const Fault* fault = find_fault(faults, FaultKind::kResetInRequest)) {
    static_cast<void>(reader_.read_body(request, fault->bytes));
    wire_.reset();
    return false;
  }
  outcome = reader_.read_body(request);
  if (outcome == RequestReader::Outcome::kEnd) return false;
  if (outcome != RequestReader::Outcome::kRequest) return refuse_wire(outcome);
  note_body(record, request.body.size());

  if (shared_.options.latency.count() > 0 && !wire_.wait(shared_.options.latency)) return false;
  for (const Fault& fault : faults) {
    if (fault.kind == FaultKind::kDelay && !wire_.wait(fault.delay)) return false;
  }
  if (end_unanswered(faults)) return false;
  Answer answer = answer_to(request, route, faults);
  note_status(record, answer.status);
  return deliver(wire_, std::move(answer), faults,
                 {.request_id = request_id_,
                  .date = s3::format_http_date(shared_.now()),
                  .close_after = request.header("connection") == "close"});
}

Answer Session::answer_to(WireRequest& request, const std::optional<Route>& route,
                          const std::vector<Fault>& faults) {
  for (const FaultKind kind : {FaultKind::kStatus, FaultKind::kRedirect}) {
    if (const Fault* fault = find_fault(faults, kind)) {
      Answer answer = scripted_answer(*fault, shared_.now());
      answer.head_only = request.method == "HEAD";
      return answer;
    }
  }
  Answer answer = checked_answer(request, route, faults);
  if (request.method == "HEAD") answer.head_only = true;
  return answer;
}

Answer Session::checked_answer(WireRequest& request, const std::optional<Route>& route,
                               const std::vector<Fault>& faults) {
  const auto now = shared_.now();
  known_ = shared_.known_credentials();
  const auto checked = checker_.check({.method = request.method,
                                       .path = request.path,
                                       .query = request.query,
                                       .headers = request.headers,
                                       .payload_hash = {}},
                                      now);
  if (!checked) return check_answer(checked.error(), shared_.options.region, now);
  if (!checked->payload_sha256_hex.empty() &&
      checked->payload_sha256_hex != digest::hex(digest::sha256(request.body))) {
    return error_answer(400, "XAmzContentSHA256Mismatch",
                        "the body is not what x-amz-content-sha256 says");
  }
  if (!route) return error_answer(404, "NoSuchBucket", "outside the base path");
  return carry_out(request, *route, shared_.rules, shared_.objects, faults);
}

bool Session::end_unanswered(const std::vector<Fault>& faults) {
  if (find_fault(faults, FaultKind::kResetUnapplied) != nullptr) {
    wire_.reset();
  } else if (find_fault(faults, FaultKind::kCloseUnanswered) != nullptr) {
    wire_.close();
  } else if (find_fault(faults, FaultKind::kStallUnanswered) != nullptr) {
    wire_.wait_for_end();
  } else if (find_fault(faults, FaultKind::kGarbage) != nullptr) {
    static_cast<void>(wire_.write("\x16\x03\x01 this is not HTTP\r\n\r\n\xff\xff\n", {}));
    wire_.close();
  } else {
    return false;
  }
  return true;
}

bool Session::refuse_wire(RequestReader::Outcome outcome) {
  const bool large = outcome == RequestReader::Outcome::kTooLarge;
  return deliver(wire_,
                 error_answer(400, large ? "EntityTooLarge" : "BadRequest", reader_.problem()), {},
                 {.request_id = request_id_,
                  .date = s3::format_http_date(shared_.now()),
                  .close_after = true});
}

const s3::Credentials* Session::find_credentials(std::string_view id) const {
  const auto it = std::ranges::find(*known_, id, &s3::Credentials::access_key_id);
  return it == known_->end() ? nullptr : &*it;
}

std::size_t Session::start_record(const WireRequest& request, steady_clock::time_point arrived,
                                  const std::vector<Fault>& faults) {
  if (shared_.options.records_max == 0) return SIZE_MAX;
  RequestRecord record{.method = std::string(request.method),
                       .target = std::string(request.target()),
                       .headers = {},
                       .body_bytes = 0,
                       .connection = connection_,
                       .arrived = arrived,
                       .status = 0,
                       .faults = {}};
  for (const auto& h : request.headers) record.headers.emplace_back(h.name, h.value);
  for (const Fault& fault : faults) record.faults.push_back(fault.kind);
  const std::lock_guard lock(shared_.mutex);
  if (shared_.records.size() == shared_.options.records_max) return SIZE_MAX;
  shared_.records.push_back(std::move(record));
  return shared_.records.size() - 1;
}
void Session::note_body(std::size_t record, std::size_t bytes) {
  if (record == SIZE_MAX) return;
  const std::lock_guard lock(shared_.mutex);
  if (record < shared_.records.size()) shared_.records[record].body_bytes = bytes;
}
void Session::note_status(std::size_t record, int status) {
  if (record == SIZE_MAX) return;
  const std::lock_guard lock(shared_.mutex);
  if (record < shared_.records.size()) shared_.records[record].status = status;
}

}  // namespace objectcache::fake_s3
