// The records of a thread's ring, checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/byte_reader.h"
#include "inprocess/sampler/layout.h"

namespace pe::inprocess {

/// A sample as it was taken; `stack` is as long as the header says, and dies with the bytes.
struct TakenSample {
  Sample header;
  Bytes stack;
};

/// The next record; nullopt at the end, or if what follows is none: then the reader has bytes left.
std::optional<TakenSample> take_record(ByteReader& reader) noexcept;

/// Calls `on_sample` for each record; false if something else than whole records follows those.
bool for_each_record(Bytes bytes, const std::function<void(const TakenSample&)>& on_sample);

}  // namespace pe::inprocess
