// Reads and checks the records of a thread's ring.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/byte_reader.h"
#include "inprocess/sampler/layout.h"

namespace pe::inprocess {

/// A recorded sample.  `stack` has the header's length, and is valid as long as the bytes that were
/// read.
struct TakenSample {
  Sample header;
  Bytes stack;
};

/// Returns the next record.  nullopt at the end, or at bytes that are no record, which stay in the
/// reader.
std::optional<TakenSample> take_record(ByteReader& reader) noexcept;

/// Calls `on_sample` for each record; false if other bytes than whole records follow.
bool for_each_record(Bytes bytes, const std::function<void(const TakenSample&)>& on_sample);

}  // namespace pe::inprocess
