// The functions of the C library that our hooks replace: the next definitions in the search order.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <sys/time.h>

#include <csignal>
#include <ctime>

namespace pe::inprocess {

struct RealFunctions {
  int (*pthread_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  int (*sigaction)(int, const struct sigaction*, struct sigaction*);
  sighandler_t (*signal)(int, sighandler_t);
  int (*sigprocmask)(int, const sigset_t*, sigset_t*);
  int (*pthread_sigmask)(int, const sigset_t*, sigset_t*);
  int (*sigwait)(const sigset_t*, int*);
  int (*sigwaitinfo)(const sigset_t*, siginfo_t*);
  int (*sigtimedwait)(const sigset_t*, siginfo_t*, const timespec*);
  int (*signalfd)(int, const sigset_t*, int);
  int (*setitimer)(__itimer_which_t, const itimerval*, itimerval*);
  /// The C library's own functions, even if a sanitizer wraps them.
  int (*libc_sigaction)(int, const struct sigaction*, struct sigaction*);
  int (*libc_clock_gettime)(clockid_t, timespec*);
  bool is_ready;
};

/// Returns the functions.  The first call finds them.
const RealFunctions& real() noexcept;

}  // namespace pe::inprocess
