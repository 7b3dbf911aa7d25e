// The handler of SIGPROF, and the program's own, which it stands before.
//
// A signal is ours if the kernel's timer says so, by its cookie; every other goes to what the
// program has set for SIGPROF.
// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <cstdint>

namespace pe::inprocess {

/// Takes SIGPROF over, and keeps what was set for it as the program's.  False: errno.
bool install_handler() noexcept;

/// sigaction(2) for SIGPROF as the program sees it.  Only while the handler is installed.
void set_program_action(const struct sigaction* action, struct sigaction* old) noexcept;
/// Whether the program has a handler for SIGPROF.
bool has_program_handler() noexcept;

/// Lets the signal through to the calling thread, unless the program uses it itself.
void unblock_for_samples() noexcept;
/// A set for sigprocmask(2) and its kind with SIGPROF left out of it in `room`, if the program
/// means all signals by it; else `set`.
const sigset_t* without_samples(const sigset_t* set, sigset_t& room) noexcept;

/// sigaction(2), as what the program would call without our hook.
using SigactionFunction = int (*)(int, const struct sigaction*, struct sigaction*);
/// To be called before anything else here.  `next` may be a sanitizer's wrapper: ThreadSanitizer's
/// delays signals until the program calls its runtime, when the registers that it passes are no
/// longer those of the thread.  `of_libc` wraps nothing; nullptr: it was not found.
void set_real_sigaction(SigactionFunction next, SigactionFunction of_libc) noexcept;

}  // namespace pe::inprocess
