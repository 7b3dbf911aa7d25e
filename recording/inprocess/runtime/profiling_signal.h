// SIGPROF, the signal of our timers: which signals are ours, and how a handler of ours is
// installed.
//
// The libraries differ in one policy.  The linked profiler refuses to start in a program that
// handles SIGPROF itself; the loaded one runs in place of the program's handler, and calls it.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "recording/inprocess/runtime/proc_self.h"

namespace pe::inprocess {

/// Those of a handler that the program does not notice.
inline constexpr int kUnnoticed = SA_RESTART | SA_ONSTACK;

/// A timer's signal carries a cookie in the upper half of its value, and a slot in the lower half.
inline constexpr std::uint64_t kCookieBits = 0xffffffff00000000;

/// Returns the value of a timer's signal; 0 if it is another one's.
inline std::uint64_t value_of_timer(const siginfo_t& signal) noexcept {
  return signal.si_code == SI_TIMER ? reinterpret_cast<std::uint64_t>(signal.si_ptr) : 0;
}

/// Whether an action calls a function.
inline bool is_function(const struct sigaction& action) noexcept {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

/// The type of sigaction(2), which may be a hook or a sanitizer's wrapper.
using SigactionFunction = int (*)(int, const struct sigaction*, struct sigaction*);

/// Installs `handle` for SIGPROF, with SA_RESTART and SA_ONSTACK if `flags` has them.  All signals
/// are blocked while it runs: nobody jumps out of it, and it is not entered twice.  False on
/// failure; errno has the reason.
inline bool set_handler(SigactionFunction set, void (*handle)(int, siginfo_t*, void*), int flags,
                        struct sigaction* old) noexcept {
  struct sigaction action = {};
  action.sa_sigaction = handle;
  ::sigfillset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | (flags & (SA_RESTART | SA_ONSTACK));
  return set(SIGPROF, &action, old) == 0;
}

/// Does what the kernel does with an unhandled SIGPROF: ends the process.  For handlers: the signal
/// is delivered when the handler returns and the previous mask is restored.
inline void end_by_signal(SigactionFunction set) noexcept {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  set(SIGPROF, &action, nullptr);
  ::syscall(SYS_tgkill, own_pid(), own_tid(), SIGPROF);
}

/// Unblocks SIGPROF in the calling thread.
inline void unblock_signal() noexcept {
  constexpr std::uint64_t kSet = std::uint64_t{1} << (SIGPROF - 1);  // as the kernel has it
  ::syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &kSet, nullptr, sizeof kSet);
}

}  // namespace pe::inprocess
