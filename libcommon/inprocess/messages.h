// What a library has to say: lines on the program's standard error.
//
// A program may close that and open another file in its place, as daemons do, so nothing is written
// unless it is what the process began with.  A line that cannot be written at once, or whose reader
// has gone, is left out: the program must not wait for it, nor end of it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "inprocess/shared_file.h"

namespace pe::inprocess {

/// What standard error is; to be called when the program begins.  Until then nothing is written.
void note_standard_error() noexcept;
/// Nothing is written from now on.
void be_silent() noexcept;
/// "TOOL: process PID WHAT (Too many open files)"; `error` is an errno, 0 for none.
void report_line(std::string_view tool, std::string_view what, int error = 0) noexcept;
/// The same, with what has failed: "is not traced: no memory".
void report_failure(std::string_view tool, std::string_view start, const Failure& failure) noexcept;

}  // namespace pe::inprocess
