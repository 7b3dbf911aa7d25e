// Makes Ctrl-C and similar signals pollable, for tools that must end in good order.
// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <optional>

#include "base/fd.h"

namespace pe {

/// The inherited signal settings that StopSignals changes.
struct SignalState {
  sigset_t blocked;
  bool ignores_pipe;  ///< SIGPIPE

  /// Returns the current state of the process.
  static SignalState now();
  /// Sets the process to this state; async-signal-safe.
  void apply() const noexcept;
};

struct StopSignal {
  int number;
  bool is_from_terminal;  ///< a key: the terminal's whole process group has received it
};

/// While an object lives, SIGINT, SIGTERM and SIGHUP do not end the process but make fd() readable.
/// SIGPIPE becomes an error of write(2).  Only one object may exist at a time.  If the process was
/// started with SIGINT ignored, take() reports SIGINT only from kill(2), not from Ctrl-C.
class StopSignals {
 public:
  /// Throws Error.
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  StopSignals(StopSignals&&) = delete;
  StopSignals& operator=(StopSignals&&) = delete;
  /// Restores the previous state, and drops pending signals.
  ~StopSignals();

  /// Returns the previous state, for a command that must start as if it had been called directly.
  [[nodiscard]] const SignalState& before() const noexcept { return before_; }

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Removes and returns one pending signal, if there is one.
  std::optional<StopSignal> take();

 private:
  SignalState before_ = SignalState::now();
  bool ignores_keys_;
  Fd fd_;
};

}  // namespace pe
