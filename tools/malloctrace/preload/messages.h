// What the library has to say: lines on the program's standard error.
//
// A program may close that and open another file in its place, as daemons do, so nothing is written
// unless it is what the process began with.  A line that cannot be written at once, or whose reader
// has gone, is left out: the program must not wait for it, nor end of it.  Only the process that
// malloctrace has started says anything: what others have as standard error may be data.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "malloctrace/preload/shared_file.h"

namespace pe::malloctrace {

/// What standard error is; to be called when the program begins.  Until then nothing is written.
void note_standard_error() noexcept;
/// Nothing is written from now on.
void be_silent() noexcept;
/// That the process is not traced, and why.
void report(const SharedFailure& failure) noexcept;
/// About the process; `error` is an errno, 0 for none.
void report_line(std::string_view what, int error = 0) noexcept;

}  // namespace pe::malloctrace
