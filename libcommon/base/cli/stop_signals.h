// Ctrl-C and its kin as something to poll, for tools that must end in good order.
// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <optional>

#include "base/fd.h"

namespace pe {

/// Of what a process hands on to the programs that it begins, what StopSignals changes.
struct SignalState {
  sigset_t blocked;
  bool ignores_pipe;  ///< SIGPIPE

  /// As it is now.
  static SignalState now();
  /// Makes it so; async-signal-safe.
  void apply() const noexcept;
};

struct StopSignal {
  int number;
  bool is_from_terminal;  ///< a key: everybody in the terminal's process group has got it
};

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end the process but make
/// fd() readable, and SIGPIPE is an error of write(2).  One at a time.  A process that was started
/// with SIGINT ignored hears of it only from kill(2), not from Ctrl-C.
class StopSignals {
 public:
  /// Throws Error.
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  StopSignals(StopSignals&&) = delete;
  StopSignals& operator=(StopSignals&&) = delete;
  /// Puts things back as they were; signals that came meanwhile are forgotten.
  ~StopSignals();

  /// What they were before; for a command that is to begin as if it had been called directly.
  [[nodiscard]] const SignalState& before() const noexcept { return before_; }

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Takes one signal if there is one.
  std::optional<StopSignal> take();

 private:
  SignalState before_ = SignalState::now();
  bool ignores_keys_;
  Fd fd_;
};

}  // namespace pe
