// SPDX-License-Identifier: MIT
#include "cli/stop_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/error.h"

namespace pe::cli {
namespace {

sigset_t stop_set() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    // What the caller ignores (nohup, a shell's background job) stays ignored.
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
      ::sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

SignalState SignalState::now() {
  SignalState state{};
  ::sigprocmask(SIG_SETMASK, nullptr, &state.blocked);
  struct sigaction pipe {};
  state.ignores_pipe = ::sigaction(SIGPIPE, nullptr, &pipe) == 0 && pipe.sa_handler == SIG_IGN;
  return state;
}

void SignalState::apply() const noexcept {
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  ::signal(SIGPIPE, ignores_pipe ? SIG_IGN : SIG_DFL);
}

StopSignals::StopSignals() {
  const sigset_t set = stop_set();
  fd_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd_)
    throw_errno("signalfd", errno);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

StopSignals::~StopSignals() {
  while (take()) {
  }
  before_.apply();
}

std::optional<StopSignal> StopSignals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info))
    return std::nullopt;
  return StopSignal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace pe::cli
