// Copies the stacks of threads that have waited since before the recording, which nothing else will
// do: they do not leave their CPUs.
//
// The kernel gives the registers with which they entered it.  A thread may run again while its
// stack is copied; the end of its wait, which the kernel reports, is then before the copy's end.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/budget.h"
#include "languages/common/script_reader.h"
#include "recording/bpf/bpf_object.h"
#include "recording/waits/passed_switches.h"

namespace pe::waits {

/// Holds the stack of `wait` in `passed`, to be walked, with its functions in an interpreter.  Does
/// nothing if it has no user stack.  Reading draws on `budget`.
void hold_earlier(const unwind::EarlierWait& wait, const unwind::StackOfKernel& kernel_stack,
                  languages::ScriptReader& scripts, Budget& budget, PassedSwitches& passed);
/// Cuts the outer frames of such a stack, which is kept while the thread waits, if its process has
/// used up its room.
void keep_within_budget(std::uint32_t pid, Budget& budget, Stack& stack);

}  // namespace pe::waits
