// How soon threads of the recorder run, beside many others that want the CPU.
//
// With 50 busy threads for each CPU, a recorder without precedence gets 2 % of it, and loses what
// the rings cannot hold.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::recording {

/// Gives the calling thread precedence over others, as far as permitted (CAP_SYS_NICE, ulimit -e).
/// Threads and processes that it starts later inherit that.  Does nothing if the user has set
/// another one (nice(1), chrt(1)).
void run_before_others();
/// Takes that away again from the calling thread, for work that can wait.
void run_among_others();

}  // namespace pe::recording
