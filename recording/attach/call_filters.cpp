// SPDX-License-Identifier: MIT
#include "recording/attach/call_filters.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <cstdint>
#include <span>
#include <vector>

#include "recording/inprocess/runtime/call_filter.h"
#include "recording/refused.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

/// The calls of dlopen(3), of code in recording/attach, and of tools/malloctrace/preload.
bool lets_us_work(std::span<const sock_filter> filter) {
  return inprocess::is_harmless(
      filter, {SYS_mmap,         SYS_munmap,       SYS_mprotect,        SYS_madvise,
               SYS_mincore,      SYS_brk,          __NR_openat,         SYS_read,
               SYS_pread64,      SYS_close,        SYS_fstat,           SYS_newfstatat,
               SYS_memfd_create, SYS_ftruncate,    SYS_fcntl,           SYS_futex,
               SYS_getpid,       SYS_gettid,       SYS_getppid,         SYS_prctl,
               SYS_prlimit64,    SYS_tgkill,       SYS_sched_yield,     SYS_sched_getaffinity,
               SYS_nanosleep,    SYS_rt_sigreturn, SYS_process_vm_readv});
}

}  // namespace

void check_call_filters(pid_t pid, pid_t tid) {
  const auto status = stream::status_of(pid, tid);
  const std::uint32_t filters = status ? status->filters : 0;
  for (std::uint32_t i = 0; i < filters; ++i) {
    constexpr std::size_t kMostInstructions = 4096;  // BPF_MAXINSNS
    std::vector<sock_filter> filter(kMostInstructions);
    const long length = ::ptrace(PTRACE_SECCOMP_GET_FILTER, tid,
                                 reinterpret_cast<void*>(std::uintptr_t{i}), filter.data());
    if (length <= 0)
      throw Refused(fmt::format(
          "{}: it filters its system calls (seccomp(2)), and only CAP_SYS_ADMIN may read how: a "
          "call of ours might end it",
          pid));
    if (!lets_us_work(std::span(filter).first(static_cast<std::size_t>(length))))
      throw Refused(fmt::format(
          "{}: its filter of system calls (seccomp(2)) would end it at a call of ours", pid));
  }
}

}  // namespace pe::recording
