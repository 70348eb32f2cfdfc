#pragma once

#include <span>
#include <string_view>

#include "fake_s3/fault_plan.h"
#include "fake_s3/verbs.h"
#include "fake_s3/wire.h"

namespace objectcache::fake_s3 {

struct DeliveryFrame {
  std::string_view request_id;
  std::string_view date;     ///< Value of the Date header.
  bool close_after = false;  ///< The client asked for it, or the request was malformed.
};

/// Sends an answer, spoiled by those of the faults that concern its delivery. True: the connection
/// may carry another request; else it has been ended.
[[nodiscard]] bool deliver(Wire& wire, Answer answer, std::span<const Fault> faults,
                           const DeliveryFrame& frame);

}  // namespace objectcache::fake_s3
