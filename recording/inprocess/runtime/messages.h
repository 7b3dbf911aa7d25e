// Messages of a library: lines on the program's standard error.
//
// A program may close standard error and open another file in its place, as daemons do.  So a line
// is written only if standard error is still the file that the process started with.  A line is
// dropped if it cannot be written at once, or if its reader has gone.  The program must neither
// wait for a line nor die of it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "recording/inprocess/runtime/shared_file.h"

namespace pe::inprocess {

/// Remembers which file standard error is.  Call it when the program starts: nothing is written
/// before.
void note_standard_error() noexcept;
/// Suppresses all further lines.
void be_silent() noexcept;
/// Writes "TOOL: process PID WHAT (Too many open files)".  `error` is an errno, 0 for none.
void report_line(std::string_view tool, std::string_view what, int error = 0) noexcept;
/// Writes a line with `start` and the failed action: "is not traced: no memory".
void report_failure(std::string_view tool, std::string_view start, const Failure& failure) noexcept;

}  // namespace pe::inprocess
