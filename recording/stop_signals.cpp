// SPDX-License-Identifier: MIT
#include "recording/stop_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/error.h"

namespace pe {
namespace {

bool is_ignored(int signal) {
  struct sigaction now = {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// Signals that the caller ignores (nohup) stay ignored, except SIGINT.  A script's background jobs
/// ignore SIGINT, but a user who sends it by kill(1) wants them to end.  The kernel queues a
/// blocked signal even if it is ignored (sig_ignored(), kernel/signal.c).
sigset_t stop_set() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  for (const int signal : {SIGTERM, SIGHUP})
    if (!is_ignored(signal))
      ::sigaddset(&set, signal);
  return set;
}

}  // namespace

SignalState SignalState::now() {
  SignalState state{};
  ::sigprocmask(SIG_SETMASK, nullptr, &state.blocked);
  struct sigaction pipe = {};
  state.ignores_pipe = ::sigaction(SIGPIPE, nullptr, &pipe) == 0 && pipe.sa_handler == SIG_IGN;
  return state;
}

void SignalState::apply() const noexcept {
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  ::signal(SIGPIPE, ignores_pipe ? SIG_IGN : SIG_DFL);
}

StopSignals::StopSignals() : ignores_keys_(is_ignored(SIGINT)) {
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
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const StopSignal signal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
    if (signal.number != SIGINT || !signal.is_from_terminal || !ignores_keys_)
      return signal;
  }
  return std::nullopt;
}

}  // namespace pe
