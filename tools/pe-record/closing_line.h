// The closing line of a recording of samples.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "record/own_cost.h"
#include "record/stream/drain.h"
#include "record/stream/recorded_stream.h"

namespace pe::recorder {

/// "1234 samples, 0 lost, 1 thread seen; own CPU …", and how many stacks are complete.
std::string closing_line(const record::Passed& passed, const record::RecordedStream& stream,
                         const record::OwnCost& cost);

}  // namespace pe::recorder
