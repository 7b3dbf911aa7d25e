// SPDX-License-Identifier: MIT
#include "sampler/preload/real_functions.h"

#include "preload/atomics.h"
#include "preload/find_behind.h"

namespace pe::sampler {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit RealFunctions functions{};

}  // namespace

const RealFunctions& real() noexcept {
  // Two threads that come first find the same.
  if (preload::load_published(functions.is_ready))
    return functions;
  preload::find_behind("pthread_create", functions.pthread_create);
  preload::find_behind("sigaction", functions.sigaction);
  preload::find_behind("signal", functions.signal);
  preload::find_behind("sigprocmask", functions.sigprocmask);
  preload::find_behind("pthread_sigmask", functions.pthread_sigmask);
  preload::find_behind("sigwait", functions.sigwait);
  preload::find_behind("sigwaitinfo", functions.sigwaitinfo);
  preload::find_behind("sigtimedwait", functions.sigtimedwait);
  preload::find_behind("signalfd", functions.signalfd);
  preload::find_behind("setitimer", functions.setitimer);
  preload::find_in_libc("sigaction", "GLIBC_2.2.5", functions.libc_sigaction);
  preload::find_in_libc("clock_gettime", "GLIBC_2.17", functions.libc_clock_gettime);
  preload::publish(functions.is_ready, true);
  return functions;
}

}  // namespace pe::sampler
