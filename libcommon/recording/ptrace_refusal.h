// Why a process may not be traced, in words that name the cure.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <string>

namespace pe::recording {

/// Throws SourceRefused if it can be told beforehand that `tid`, a process or thread, cannot be
/// traced: ourselves, a thread of the kernel, one that is traced already.
void check_traceable(pid_t tid);

/// What ptrace(2) means by `error`, having been asked to trace `tid`.
std::string why_not_traced(pid_t tid, int error);

/// Why ptrace(2) works for nothing at all here; empty if it may work.
std::string why_no_ptrace();

/// The sysctl kernel.yama.ptrace_scope, 0 to 3; 0 where there is none.
int ptrace_scope();

}  // namespace pe::recording
