// The filters of system calls (seccomp(2)) of a thread that is to work for us.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

namespace pe::recording {

/// Throws Refused if a filter of the thread, which must be stopped, would end its process because
/// of a call that we make there, or that a library of ours makes.  Also throws if the filters
/// cannot be read, which needs CAP_SYS_ADMIN.
void check_call_filters(pid_t pid, pid_t tid);

}  // namespace pe::recording
