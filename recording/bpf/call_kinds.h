// A table of system calls, and what each waits for in a state that signals interrupt; for C and C++
// (arch/x86/entry/syscalls/syscall_64.tbl).  clone, clone3 and vfork wait as vfork.
// SPDX-License-Identifier: MIT
#pragma once

/// CALL(number, name, kind) for each.
#define PE_WAITING_CALLS(CALL)           \
  CALL(35, nanosleep, kWaitSleep)        \
  CALL(230, clock_nanosleep, kWaitSleep) \
  CALL(202, futex, kWaitLock)            \
  CALL(449, futex_waitv, kWaitLock)      \
  CALL(455, futex_wait, kWaitLock)       \
  CALL(56, clone, kWaitChild)            \
  CALL(58, vfork, kWaitChild)            \
  CALL(61, wait4, kWaitChild)            \
  CALL(247, waitid, kWaitChild)          \
  CALL(435, clone3, kWaitChild)          \
  CALL(0, read, kWaitIo)                 \
  CALL(1, write, kWaitIo)                \
  CALL(7, poll, kWaitIo)                 \
  CALL(17, pread64, kWaitIo)             \
  CALL(18, pwrite64, kWaitIo)            \
  CALL(19, readv, kWaitIo)               \
  CALL(20, writev, kWaitIo)              \
  CALL(23, select, kWaitIo)              \
  CALL(40, sendfile, kWaitIo)            \
  CALL(42, connect, kWaitIo)             \
  CALL(43, accept, kWaitIo)              \
  CALL(44, sendto, kWaitIo)              \
  CALL(45, recvfrom, kWaitIo)            \
  CALL(46, sendmsg, kWaitIo)             \
  CALL(47, recvmsg, kWaitIo)             \
  CALL(72, fcntl, kWaitIo)               \
  CALL(73, flock, kWaitIo)               \
  CALL(74, fsync, kWaitIo)               \
  CALL(75, fdatasync, kWaitIo)           \
  CALL(208, io_getevents, kWaitIo)       \
  CALL(232, epoll_wait, kWaitIo)         \
  CALL(270, pselect6, kWaitIo)           \
  CALL(271, ppoll, kWaitIo)              \
  CALL(275, splice, kWaitIo)             \
  CALL(276, tee, kWaitIo)                \
  CALL(281, epoll_pwait, kWaitIo)        \
  CALL(288, accept4, kWaitIo)            \
  CALL(295, preadv, kWaitIo)             \
  CALL(296, pwritev, kWaitIo)            \
  CALL(299, recvmmsg, kWaitIo)           \
  CALL(307, sendmmsg, kWaitIo)           \
  CALL(333, io_pgetevents, kWaitIo)      \
  CALL(426, io_uring_enter, kWaitIo)     \
  CALL(441, epoll_pwait2, kWaitIo)
