#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "store/object_store.h"
#include "store/s3/call.h"
#include "store/s3/put_condition.h"

namespace objectcache::store_s3 {

/// Finds out whether the server honours `If-None-Match: *`: puts a small object of a random name
/// twice with it, looks whether the second was refused, and deletes the object.
///
/// Threads: owner thread of the lane's loop.
class PutProbe final : public store::Operation, public std::enable_shared_from_this<PutProbe> {
 public:
  using Completion = std::move_only_function<void(Result<PutCondition::State>)>;

  /// `done` comes exactly once, later.
  static std::shared_ptr<PutProbe> begin(Lane& lane, TimePoint deadline, Completion done);
  void cancel() override;

 private:
  PutProbe(Lane& lane, TimePoint deadline, Completion done);

  [[nodiscard]] Call::Request request(std::string method, bool conditional) const;
  void first();
  void second();
  void clean_up(PutCondition::State found);
  void fail_with(const Error& error);

  Lane& lane_;
  const TimePoint deadline_;
  Completion done_;
  std::string key_;
  std::array<std::byte, 12> body_{};
  std::shared_ptr<Call> current_;
};

}  // namespace objectcache::store_s3
