// Which of the programs that this one begins are traced.
// SPDX-License-Identifier: MIT
#include "inprocess/exec_hooks.h"
#include "malloctrace/preload/tracer.h"

namespace pe::inprocess {

bool follows_exec() noexcept {
  return malloctrace::follows_children() || malloctrace::is_own_process();
}

bool follows_spawn() noexcept { return malloctrace::follows_children(); }

// The memory of a program is shared as long as its process runs, and what it was to have counted by
// then has been.
bool begin_exec() noexcept { return false; }

void fail_exec(bool /*what_began*/) noexcept {}

void leave_out() noexcept { malloctrace::tell_left_out(); }

}  // namespace pe::inprocess
