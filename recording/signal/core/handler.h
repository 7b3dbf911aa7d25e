// Our handler of SIGPROF, which runs in place of the program's own and calls it.
//
// A signal is ours if it carries the cookie of our timers, or comes from ITIMER_PROF while we use
// that.  The program's action for SIGPROF handles every other signal.
// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <cstdint>

#include "recording/inprocess/runtime/profiling_signal.h"

namespace pe::inprocess {

/// Installs our handler for SIGPROF, and keeps the previous action as the program's.  False on
/// failure; errno has the reason.
bool install_handler() noexcept;

/// Gives the signal back to the program for good.  Discards signals that are pending.
void remove_handler() noexcept;

/// Emulates sigaction(2) for SIGPROF to the program.  Only while our handler is installed.
void set_program_action(const struct sigaction* action, struct sigaction* old) noexcept;
/// Whether the program has a handler for SIGPROF.
bool has_program_handler() noexcept;

/// Unblocks SIGPROF in the calling thread, unless the program handles it itself.
void unblock_for_samples() noexcept;
/// Returns the set to use in sigprocmask(2) and similar calls.  If the program means all signals by
/// `set`, it is a copy in `room` without SIGPROF; else it is `set`.
const sigset_t* without_samples(const sigset_t* set, sigset_t& room) noexcept;

/// Call this before the other functions here.  `next` may be a sanitizer's wrapper.
/// ThreadSanitizer's delays signals until the program calls its runtime, and then passes outdated
/// registers.  `of_libc` is the C library's own function; nullptr if it was not found.
void set_real_sigaction(SigactionFunction next, SigactionFunction of_libc) noexcept;

}  // namespace pe::inprocess
