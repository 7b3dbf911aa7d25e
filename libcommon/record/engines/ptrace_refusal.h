// Why a process may not be traced, in words that name the cure.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <string>

namespace pe::record {

/// Throws Refused if it can be told beforehand that `tid`, a process or thread, cannot be
/// traced: ourselves, a thread of the kernel, one that is traced already.
void check_traceable(pid_t tid);

/// Throws Refused if a command would fail because it is traced; `name` as for execvp(3).  One
/// that cannot be found is not refused here.
void check_command_is_traceable(const std::string& name);

/// What ptrace(2) means by `error`, having been asked to trace `tid`.
std::string why_not_traced(pid_t tid, int error);

/// Why ptrace(2) works for nothing at all here; empty if it may work.
std::string why_no_ptrace();

/// The sysctl kernel.yama.ptrace_scope, 0 to 3; 0 where there is none.
int ptrace_scope();

/// Whether a program, by the path of its file, looks for leaks when it ends: LeakSanitizer, alone
/// or as a part of AddressSanitizer.  It traces its own process then, and ends it with an error if
/// another tracer is there.  Static runtimes are found by the symbols that they export.
bool looks_for_leaks(const std::string& path);
/// The same of a process, also by its environment (detect_leaks=0).
bool looks_for_leaks(pid_t pid);

}  // namespace pe::record
