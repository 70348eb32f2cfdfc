#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fake_s3/fake_s3.h"
#include "fake_s3/fault_plan.h"
#include "fake_s3/object_table.h"
#include "fake_s3/verbs.h"
#include "fake_s3/wire.h"
#include "s3/sigv4.h"

namespace objectcache::fake_s3 {

using CredentialList = std::vector<s3::Credentials>;

/// What the connections of one server share. Threads: any.
struct SharedState {
  explicit SharedState(FakeS3Options o)
      : options(std::move(o)),
        rules{.region = options.region,
              .base_path = options.base_path,
              .virtual_host_suffix = options.virtual_host_suffix,
              .refuse_unknown_headers = options.refuse_unknown_headers,
              .object_bytes_max = options.object_bytes_max},
        faults(options.fault_seed),
        objects(options.etags),
        credentials(std::make_shared<const CredentialList>(options.credentials)) {}

  const FakeS3Options options;
  const VerbRules rules;
  FaultPlan faults;
  ObjectTable objects;
  int stop_fd = -1;
  std::atomic<std::uint64_t> requests_total{0};

  mutable std::mutex mutex;  // guards the two below; never held during I/O
  std::shared_ptr<const CredentialList> credentials;
  std::vector<RequestRecord> records;

  [[nodiscard]] std::chrono::system_clock::time_point now() const {
    return std::chrono::system_clock::now() + options.clock_offset;
  }
  [[nodiscard]] std::shared_ptr<const CredentialList> known_credentials() const {
    const std::lock_guard lock(mutex);
    return credentials;
  }
};

/// Serves the requests of one connection, one after the other, on that connection's thread.
class Session {
 public:
  Session(SharedState& shared, Wire& wire, std::uint64_t connection);
  /// Returns when the connection has ended.
  void run();

 private:
  // False: the connection is over.
  bool serve_one();
  bool refuse_wire(RequestReader::Outcome outcome);
  bool end_unanswered(const std::vector<Fault>& faults);
  Answer answer_to(WireRequest& request, const std::optional<Route>& route,
                   const std::vector<Fault>& faults);
  Answer checked_answer(WireRequest& request, const std::optional<Route>& route,
                        const std::vector<Fault>& faults);
  const s3::Credentials* find_credentials(std::string_view id) const;

  // The place of a record stays right unless clear_requests() comes between, which is harmless.
  std::size_t start_record(const WireRequest& request,
                           std::chrono::steady_clock::time_point arrived,
                           const std::vector<Fault>& faults);
  void note_body(std::size_t record, std::size_t bytes);
  void note_status(std::size_t record, int status);

  SharedState& shared_;
  Wire& wire_;
  const std::uint64_t connection_;
  RequestReader reader_;
  s3::Checker checker_;
  std::shared_ptr<const CredentialList> known_;  // keeps what check() looks up alive
  std::string request_id_;
};

}  // namespace objectcache::fake_s3
