#include "store/s3/s3_stats.h"

namespace objectcache::store_s3 {

std::string_view verb_name(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return "get";
    case Verb::kPut:
      return "put";
    case Verb::kHead:
      return "head";
    case Verb::kList:
      return "list";
    case Verb::kDelete:
      return "delete";
    case Verb::kDeleteMany:
      return "delete_many";
  }
  return "unknown";
}

void S3Counters::copy_to(S3Stats& out) const {
  const auto read = [](const Count& count) { return count.load(std::memory_order_relaxed); };
  for (std::size_t i = 0; i < kVerbs; ++i) {
    out.operations[i] = read(operations[i]);
    out.requests[i] = read(requests[i]);
  }
  for (std::size_t i = 0; i < kErrorCodes; ++i) out.errors[i] = read(errors[i]);
  out.bytes_read = read(bytes_read);
  out.bytes_written = read(bytes_written);
  out.retries = read(retries);
  out.hedges = read(hedges);
  out.hedges_won = read(hedges_won);
  out.hedged_bytes = read(hedged_bytes);
  out.throttled = read(throttled);
  out.in_flight = read(in_flight);
}

}  // namespace objectcache::store_s3
