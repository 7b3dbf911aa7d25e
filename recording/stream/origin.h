// Notes in a stream where, how and when it was recorded (stream/records/record.h).
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stream/stream_writer.h"

namespace pe::recording {

/// Writes the host's name, the version of this program with the engine that records, its command
/// line, and the time of day on the clock of the samples (CLOCK_MONOTONIC).  What the system does
/// not tell is left out; so is a word of the command line after 32 KiB.  The attrs must precede
/// these records.
void write_origin(stream::StreamWriter& writer, std::string_view engine);

}  // namespace pe::recording
