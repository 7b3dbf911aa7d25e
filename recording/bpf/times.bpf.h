// Divides the time of the targets' threads: what a thread waits for, how long it waits for a CPU
// after that, and when no thread runs at all.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include "recording/bpf/maps.bpf.h"

/// Returns what a system call waits for (arch/x86/entry/syscalls/syscall_64.tbl), if it waits in a
/// state that signals interrupt.
static __always_inline uint32_t kind_of_call(uint64_t call) {
  switch (call) {
    case 35:   // nanosleep
    case 230:  // clock_nanosleep
      return kWaitSleep;
    case 202:  // futex
    case 449:  // futex_waitv
    case 455:  // futex_wait
      return kWaitLock;
    case 56:   // clone, as vfork
    case 58:   // vfork
    case 61:   // wait4
    case 247:  // waitid
    case 435:  // clone3, as vfork
      return kWaitChild;
    case 0:    // read
    case 1:    // write
    case 7:    // poll
    case 17:   // pread64
    case 18:   // pwrite64
    case 19:   // readv
    case 20:   // writev
    case 23:   // select
    case 40:   // sendfile
    case 42:   // connect
    case 43:   // accept
    case 44:   // sendto
    case 45:   // recvfrom
    case 46:   // sendmsg
    case 47:   // recvmsg
    case 72:   // fcntl
    case 73:   // flock
    case 74:   // fsync
    case 75:   // fdatasync
    case 208:  // io_getevents
    case 232:  // epoll_wait
    case 270:  // pselect6
    case 271:  // ppoll
    case 275:  // splice
    case 276:  // tee
    case 281:  // epoll_pwait
    case 288:  // accept4
    case 295:  // preadv
    case 296:  // pwritev
    case 299:  // recvmmsg
    case 307:  // sendmmsg
    case 333:  // io_pgetevents
    case 426:  // io_uring_enter
    case 441:  // epoll_pwait2
      return kWaitIo;
    default:
      return kWaitOther;
  }
}

/// Whether a call that waits for descriptors has none, so that only a time or a signal ends it.
static __always_inline bool has_no_descriptors(const struct pt_regs* regs) {
  switch (regs->orig_ax) {
    case 7:    // poll
    case 271:  // ppoll
      return regs->si == 0;
    case 23:   // select
    case 270:  // pselect6
      return (regs->si | regs->dx | regs->r10) == 0;
    default:
      return false;
  }
}

/// Returns what a thread that leaves its CPU in `state` waits for.
static __always_inline uint32_t kind_of_wait(struct ThreadState* thread, const struct pt_regs* regs,
                                             bool is_user, uint32_t state) {
  enum { kUninterruptible = 0x2, kStopped = 0x4, kTraced = 0x8, kSegmentOf64Bit = 0x33 };
  if (state == 0)
    return kWaitReady;
  if (!is_user || (state & (kStopped | kTraced)))
    return kWaitOther;
  if (thread->kernel_lock)
    return kWaitLock;
  // Whatever enters the kernel without a call leaves this mark (arch/x86/entry/entry_64.S).
  if (regs->orig_ax == ~0UL)
    return kWaitFault;
  enum { kRestartCall = 219 };  // after a stop
  if (regs->orig_ax == kRestartCall)
    return thread->call_kind;
  // Calls of 32-bit programs have other numbers.
  const uint32_t kind =
      (regs->cs & 0xffff) == kSegmentOf64Bit ? kind_of_call(regs->orig_ax) : kWaitOther;
  thread->call_kind = kind == kWaitOther && (state & kUninterruptible) ? kWaitIo
                      : kind == kWaitIo && has_no_descriptors(regs)    ? kWaitSleep
                                                                       : kind;
  return thread->call_kind;
}

/// The thread has come to a CPU.  Returns since when no thread of the targets had run; 0: one ran.
static __always_inline uint64_t start_running(struct ThreadState* thread) {
  if (thread->is_running)
    return 0;
  thread->is_running = 1;
  if (__sync_fetch_and_add(&running, 1) > 0)
    return 0;
  return __sync_lock_test_and_set(&silent_since_ns, 0);
}

static __always_inline void stop_running(struct ThreadState* thread, uint64_t now) {
  if (!thread->is_running)
    return;
  thread->is_running = 0;
  if (__sync_fetch_and_add(&running, -1) == 1)
    *(volatile uint64_t*)&silent_since_ns = now;
}
