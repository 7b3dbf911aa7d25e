// SPDX-License-Identifier: MIT
#include "inprocess/sampler/preload/real_functions.h"

#include "inprocess/atomics.h"
#include "inprocess/find_behind.h"

namespace pe::inprocess {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit RealFunctions functions{};

}  // namespace

const RealFunctions& real() noexcept {
  // Two threads that are both first find the same functions.
  if (load_published(functions.is_ready))
    return functions;
  find_behind("pthread_create", functions.pthread_create);
  find_behind("sigaction", functions.sigaction);
  find_behind("signal", functions.signal);
  find_behind("sigprocmask", functions.sigprocmask);
  find_behind("pthread_sigmask", functions.pthread_sigmask);
  find_behind("sigwait", functions.sigwait);
  find_behind("sigwaitinfo", functions.sigwaitinfo);
  find_behind("sigtimedwait", functions.sigtimedwait);
  find_behind("signalfd", functions.signalfd);
  find_behind("setitimer", functions.setitimer);
  find_in_libc("sigaction", "GLIBC_2.2.5", functions.libc_sigaction);
  find_in_libc("clock_gettime", "GLIBC_2.17", functions.libc_clock_gettime);
  publish(functions.is_ready, true);
  return functions;
}

}  // namespace pe::inprocess
