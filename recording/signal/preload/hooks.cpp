// Hooks for functions of the C library: those that start threads, and those that would take SIGPROF
// away from us.
//
// The program can notice the following:
//   - Interrupted system calls restart (SA_RESTART), except those that never do (signal(7)).
//     These return EINTR: poll, select, epoll_wait, nanosleep and clock_nanosleep, sigtimedwait,
//     futex waits with a timeout, sockets with a timeout, semop, io_getevents.  nanosleep also
//     returns the remaining time.  CPU-time timers expire while a thread runs, so interruptions
//     are rare.  Wall-clock timers interrupt every wait.
//   - Our handler calls the program's handler of SIGPROF, on the alternate stack if there is one.
//     The program's action also decides about SA_RESTART for our signals.
//   - The hooks remove SIGPROF from the sets that sigprocmask(2) blocks, and that sigwait(3) and
//     signalfd(2) wait for.  They do so only if the set is meant for all signals and the program
//     has no handler for SIGPROF.
//   - A program that exec(3) starts finds the default action for SIGPROF, even if the old program
//     ignores it.
// The hooks miss programs that set handlers by system calls of their own (Go's runtime).  They miss
// threads that the C library starts with all signals blocked (timer_create(2) with SIGEV_THREAD,
// aio(7)).  They also miss threads of clone(2) without thread-local storage (CLONE_SETTLS).
// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>

#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/exec_hooks.h"
#include "recording/inprocess/runtime/real_functions.h"
#include "recording/inprocess/runtime/timers.h"
#include "recording/signal/core/alternate_stack.h"
#include "recording/signal/core/handler.h"
#include "recording/signal/core/process.h"

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
namespace pe::inprocess {
namespace {

#define PE_REPLACED(of)                                                                       \
  of(pthread_create) of(sigaction) of(signal) of(sigprocmask) of(pthread_sigmask) of(sigwait) \
      of(sigwaitinfo) of(sigtimedwait) of(signalfd) of(setitimer)

struct RealFunctions {
  PE_REAL_FUNCTIONS(PE_REPLACED)
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit RealFunctions real_functions{};

const RealFunctions& real() noexcept { return found(real_functions); }

/// The function and argument of a new thread, until it runs.  Not from malloc(3), because an
/// allocator may start threads itself.
struct Begin {
  std::uint32_t is_taken;
  void* (*function)(void*);
  void* argument;
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit std::array<Begin, 1024> begins{};

Begin* take_begin() noexcept {
  for (Begin& begin : begins)
    if (load_relaxed(begin.is_taken) == 0 &&
        change(begin.is_taken, std::uint32_t{0}, std::uint32_t{1}))
      return &begin;
  return nullptr;
}

void release(Begin& begin) noexcept { publish(begin.is_taken, std::uint32_t{0}); }

/// The last call is a jump (at -O2), so that the thread's stack has no frame of ours.
void* run_thread(void* memory) {
  auto* begin = static_cast<Begin*>(memory);
  auto* const function = begin->function;
  void* const argument = begin->argument;
  release(*begin);
  begin_thread();
  return function(argument);
}

/// Whether the hooks hide the program's use of a signal from the kernel.
bool is_kept(int signal) noexcept {
  return signal == SIGPROF && process.samples() && is_own_process();
}

sighandler_t set_program_handler(sighandler_t handler, int flags) noexcept {
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigemptyset(&action.sa_mask);
  set_program_action(&action, &old);
  return old.sa_handler;
}

}  // namespace
}  // namespace pe::inprocess

using namespace pe::inprocess;

PE_HOOK int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                           void* (*function)(void*), void* argument) noexcept {
  const bool is_sampled =
      process.samples() && load_relaxed(process.is_closed) == 0 && is_own_process();
  Begin* begin = is_sampled ? take_begin() : nullptr;
  if (begin == nullptr)
    return real().pthread_create(thread, attributes, function, argument);
  begin->function = function;
  begin->argument = argument;
  const int error = real().pthread_create(thread, attributes, run_thread, begin);
  if (error != 0)
    release(*begin);
  return error;
}

PE_HOOK int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  if (!is_kept(signal))
    return real().sigaction(signal, action, old);
  set_program_action(action, old);
  return 0;
}

PE_HOOK sighandler_t signal(int signal, sighandler_t handler) noexcept {
  if (!is_kept(signal) || handler == SIG_ERR)
    return real().signal(signal, handler);
  return set_program_handler(handler, SA_RESTART);
}
PE_HOOK sighandler_t bsd_signal(int number, sighandler_t handler) noexcept {
  return signal(number, handler);
}

PE_HOOK int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  sigset_t room;
  return real().sigprocmask(how, how == SIG_UNBLOCK ? set : without_samples(set, room), old);
}
PE_HOOK int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  sigset_t room;
  return real().pthread_sigmask(how, how == SIG_UNBLOCK ? set : without_samples(set, room), old);
}

// Our signals must not wake a program that waits for all signals.
PE_HOOK int sigwait(const sigset_t* set, int* signal) {
  sigset_t room;
  return real().sigwait(without_samples(set, room), signal);
}
PE_HOOK int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  sigset_t room;
  return real().sigwaitinfo(without_samples(set, room), info);
}
PE_HOOK int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  sigset_t room;
  return real().sigtimedwait(without_samples(set, room), info, timeout);
}
PE_HOOK int signalfd(int fd, const sigset_t* set, int flags) noexcept {
  sigset_t room;
  return real().signalfd(fd, without_samples(set, room), flags);
}

PE_HOOK int setitimer(__itimer_which_t which, const itimerval* value, itimerval* old) noexcept {
  const bool is_ours = which == ITIMER_PROF && process.samples() &&
                       process.timer_kind == TimerKind::kProcess && is_own_process();
  if (is_ours && value != nullptr && (value->it_value.tv_sec != 0 || value->it_value.tv_usec != 0))
    stop_process(WhyStopped::kOwnTimer);
  else if (is_ours)
    return 0;  // the program stops a timer that it does not have
  return real().setitimer(which, value, old);
}

PE_HOOK int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
  return set_alternate_stack(stack, old);
}

namespace {

/// The dynamic linker calls this before the constructors of all other libraries (-z initfirst), so
/// that those are sampled.
[[gnu::constructor]] void start_sampling(int /*argc*/, char** /*argv*/,
                                         char** environment) noexcept {
  SigactionFunction libc_sigaction = nullptr;
  ClockFunction libc_clock_gettime = nullptr;
  find_in_libc("sigaction", "GLIBC_2.2.5", libc_sigaction);
  find_in_libc("clock_gettime", "GLIBC_2.17", libc_clock_gettime);
  set_real_sigaction(real().sigaction, libc_sigaction);
  set_real_clock(libc_clock_gettime);
  prepare_exec_hooks(environment, kSettingsVariable);
  prepare_filter_hooks();
  begin_process(environment);
}

}  // namespace
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
