// Reacts to a filter of system calls that the program installs: see filter_hooks.h.
// SPDX-License-Identifier: MIT
#include <sys/syscall.h>

#include "malloctrace/preload/tracer.h"
#include "recording/inprocess/runtime/call_filter.h"
#include "recording/inprocess/runtime/filter_hooks.h"

namespace pe::inprocess {

void note_filter(std::span<const sock_filter> filter) noexcept {
  if (!is_harmless(filter, {SYS_mmap,       SYS_mprotect,
                            SYS_munmap,     SYS_madvise,
                            __NR_openat,    SYS_read,
                            SYS_close,      SYS_getpid,
                            SYS_gettid,     SYS_getppid,
                            SYS_mincore,    SYS_process_vm_readv,
                            SYS_prctl,      SYS_memfd_create,
                            SYS_ftruncate,  SYS_fcntl,
                            SYS_socket,     SYS_connect,
                            SYS_sendmsg,    SYS_setsockopt,
                            SYS_getsockopt, SYS_sched_getaffinity,
                            SYS_sched_yield}))
    malloctrace::stop_for_filter();
}

void note_strict_mode() noexcept { malloctrace::stop_for_filter(); }

bool may_copy() noexcept { return malloctrace::is_own_process(); }

}  // namespace pe::inprocess
