// SPDX-License-Identifier: MIT
#include "sampler/preload/real_functions.h"

#include <dlfcn.h>

#include "preload/atomics.h"

namespace pe::sampler {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit RealFunctions functions{};

template <typename Function>
void find(const char* name, Function*& into) noexcept {
  into = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

const RealFunctions& real() noexcept {
  // Two threads that come first find the same.
  if (preload::load_published(functions.is_ready))
    return functions;
  find("pthread_create", functions.pthread_create);
  find("sigaction", functions.sigaction);
  find("signal", functions.signal);
  find("sigprocmask", functions.sigprocmask);
  find("pthread_sigmask", functions.pthread_sigmask);
  find("sigwait", functions.sigwait);
  find("sigwaitinfo", functions.sigwaitinfo);
  find("sigtimedwait", functions.sigtimedwait);
  find("signalfd", functions.signalfd);
  find("setitimer", functions.setitimer);
  preload::publish(functions.is_ready, true);
  return functions;
}

}  // namespace pe::sampler
