// Decides which of the programs that this one starts are traced.
// SPDX-License-Identifier: MIT
#include "malloctrace/preload/tracer.h"
#include "recording/inprocess/runtime/exec_hooks.h"

namespace pe::inprocess {

bool follows_exec() noexcept {
  return malloctrace::follows_children() || malloctrace::is_own_process();
}

bool follows_spawn() noexcept { return malloctrace::follows_children(); }

// Nothing to do: the memory of a program is shared as long as its process runs.  The program has
// already counted everything up to this point.
bool begin_exec() noexcept { return false; }

void fail_exec(bool /*what_began*/) noexcept {}

void leave_out() noexcept { malloctrace::tell_left_out(); }

}  // namespace pe::inprocess
