// SPDX-License-Identifier: MIT
#include "recording/signal/core/own_calls.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <span>

#include "recording/inprocess/runtime/call_filter.h"
#include "recording/inprocess/runtime/exec_hooks.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/signal/core/handler.h"
#include "recording/signal/core/process.h"

namespace pe::inprocess {
namespace {

/// Threads and forked processes that start later are not sampled, and those that end are not
/// noticed.
void close_process() noexcept {
  store_relaxed(process.is_closed, 1U);
  store_relaxed(process.header().is_closed, 1U);
}

}  // namespace

void note_filter(std::span<const sock_filter> filter) noexcept {
  if (!process.samples() || !is_own_process())
    return;
  if (!allows(filter, {SYS_rt_sigreturn})) {
    stop_process(WhyStopped::kFilter);
    return remove_handler();
  }
  if (!is_harmless(filter, {SYS_process_vm_readv, SYS_mincore, SYS_gettid}))
    store_relaxed(process.can_copy, 0U);
  if (!is_harmless(
          filter,
          {SYS_timer_create, SYS_timer_settime,  SYS_timer_delete, SYS_getpid, SYS_gettid,
           SYS_getppid,      SYS_rt_sigprocmask, SYS_sigaltstack,  SYS_prctl,  SYS_mmap,
           SYS_munmap,       SYS_madvise,        __NR_openat,      SYS_read,   SYS_close,
           SYS_memfd_create, SYS_ftruncate,      SYS_fcntl,        SYS_socket, SYS_setsockopt,
           SYS_connect,      SYS_sendmsg,        SYS_setitimer}))
    close_process();
}

void note_strict_mode() noexcept {
  if (!process.samples() || !is_own_process())
    return;
  store_relaxed(process.can_copy, 0U);
  close_process();
}

bool may_copy() noexcept { return process.samples() && load_relaxed(process.can_copy) != 0; }

std::uint32_t count_filters() noexcept {
  std::array<char, 4096> room;
  return filters_in(read_proc("/proc/self/status", room));
}

}  // namespace pe::inprocess
