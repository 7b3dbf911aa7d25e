// Explains why a process cannot be traced, and names the remedy.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <string>

namespace pe::recording {

/// Throws Refused if `tid`, a process or thread, certainly cannot be traced: it is ours, a
/// kernel thread, or traced already.
void check_traceable(pid_t tid);

/// Throws Refused if a command would fail because it is traced; `name` is as for execvp(3).
/// Accepts a command that cannot be found.
void check_command_is_traceable(const std::string& name);

/// Explains the `error` of ptrace(2) after a request to trace `tid`.
std::string why_not_traced(pid_t tid, int error);

/// Returns why ptrace(2) does not work at all; empty if it may work.
std::string why_no_ptrace();

/// Returns the sysctl kernel.yama.ptrace_scope, 0 to 3; 0 if it does not exist.
int ptrace_scope();

/// Returns whether a program, given by its file's path, checks for leaks when it ends.
/// LeakSanitizer does, alone or as a part of AddressSanitizer.  It traces its own process at the
/// end.  If another tracer is attached, it ends the process with an error.  Static runtimes are
/// found by the symbols that they export.
bool looks_for_leaks(const std::string& path);
/// Returns the same for a process, and respects its environment (detect_leaks=0).
bool looks_for_leaks(pid_t pid);

}  // namespace pe::recording
