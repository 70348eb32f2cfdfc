#include "stream/slice_ledger.h"

#include <cassert>

namespace objectcache::stream {

SliceLedger::SliceLedger(const ReadShape& shape)
    : shape_(shape),
      slices_per_chunk_(std::size_t{shape.layers()} * shape.units()),
      crcs_(slices_per_chunk_ * shape.chunks()),
      states_(slices_per_chunk_ * shape.chunks()),
      has_header_(shape.chunks()),
      missing_(shape.layers(), layer_slices()) {}

SliceLedger::Verdict SliceLedger::judge(std::uint8_t& state, std::uint32_t layer, bool equal) {
  state &= static_cast<std::uint8_t>(~kArrived);
  if (equal) {
    state |= kVerified;
    --missing_[layer];
    while (complete_layers_ < missing_.size() && missing_[complete_layers_] == 0) {
      ++complete_layers_;
    }
    return Verdict::kGood;
  }
  const bool again = (state & kWasBad) != 0;
  state |= kWasBad;
  return again ? Verdict::kBadAgain : Verdict::kBad;
}

SliceLedger::Verdict SliceLedger::arrived(std::uint32_t chunk, std::uint32_t slice,
                                          std::uint32_t crc32c) {
  const std::size_t at = index(chunk, slice);
  if ((states_[at] & kVerified) != 0) {
    // Written over: what was known of it counts no more. Never happens to a complete layer.
    assert(shape_.layer_of(slice) >= complete_layers_);
    states_[at] = 0;
    ++missing_[shape_.layer_of(slice)];
  }
  assert(shape_.unit_of(slice) < shape_.units_wanted(chunk));
  if (has_header_[chunk] == 0) {
    crcs_[at] = crc32c;
    states_[at] |= kArrived;
    return Verdict::kWaits;
  }
  return judge(states_[at], shape_.layer_of(slice), crcs_[at] == crc32c);
}

void SliceLedger::set_header(std::uint32_t chunk, const format::ChunkHeader& header,
                             std::vector<std::uint32_t>& bad,
                             std::vector<std::uint32_t>& bad_again) {
  assert(header.records.size() == slices_per_chunk_);
  has_header_[chunk] = 1;
  for (std::uint32_t slice = 0; slice < slices_per_chunk_; ++slice) {
    const std::size_t at = index(chunk, slice);
    const std::uint32_t expected = header.records[slice].crc32c;
    const std::uint32_t computed = crcs_[at];
    crcs_[at] = expected;
    if ((states_[at] & kArrived) == 0) continue;
    const Verdict verdict = judge(states_[at], shape_.layer_of(slice), computed == expected);
    if (verdict == Verdict::kBad) bad.push_back(slice);
    if (verdict == Verdict::kBadAgain) bad_again.push_back(slice);
  }
}

void SliceLedger::restart(std::uint32_t chunk) {
  assert(complete_layers_ == 0);
  has_header_[chunk] = 0;
  for (std::uint32_t slice = 0; slice < slices_per_chunk_; ++slice) {
    std::uint8_t& state = states_[index(chunk, slice)];
    if ((state & kVerified) != 0) ++missing_[shape_.layer_of(slice)];
    state = 0;
  }
}

}  // namespace objectcache::stream
