// Runs the user's command: starts it, holds it before its first instruction, releases it, and waits
// for its end.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace pe {

// Makes Ctrl-C and similar signals pollable, for tools that must end in good order.

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

/// The state of a child that one of our threads traces (ptrace(2)) and therefore waits for.  A wait
/// elsewhere in this process would steal the ptrace stops from that thread.
struct WaitedElsewhere {
  std::atomic<bool> is_waiting = true;  ///< false: Child itself waits for it again
  std::atomic<int> wait_status = kRunning;
  static constexpr int kRunning = -1;
};

class Child {
 public:
  /// Forks.  The child waits until go() and then starts with `signals`, which are those of our own
  /// caller.  Its standard output is `stdout_fd` if that is not negative.  `environment`
  /// ("NAME=VALUE") replaces entries of ours or adds to them.  The command's standard error is the
  /// descriptor that STACKPIPE_STDERR names, if it is set; the command inherits neither.  Throws
  /// Error.
  static Child start(const std::vector<std::string>& command, int stdout_fd,
                     const SignalState& signals, const std::vector<std::string>& environment = {});

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// Ends and reaps the child if its status is not known yet.
  ~Child();

  /// From now on the thread that owns `elsewhere` waits for the child.
  void is_waited_for(std::shared_ptr<const WaitedElsewhere> elsewhere) {
    elsewhere_ = std::move(elsewhere);
  }

  /// Lets the child start its program.  Throws CommandError if it cannot (126, 127).
  void go();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Readable once the child has ended (pidfd_open(2)); none on kernels before 5.3.
  [[nodiscard]] const Fd& ended_fd() const noexcept { return pidfd_; }

  /// Returns the child's status as a shell shows it (128 + signal), if it has ended.
  std::optional<int> poll_status();
  /// Returns the signal that ended the child; 0 if none did, or if it still runs.
  [[nodiscard]] int ended_by() const noexcept { return signal_; }
  /// Ends the child by SIGTERM, and after `patience_ms` by SIGKILL.  Calls `on_kill`, if that is
  /// not null, just before SIGKILL.
  void terminate(int patience_ms, const std::function<void()>& on_kill = nullptr);

 private:
  std::optional<int> wait_status(int options);
  void take_status(int wait_status) noexcept;

  Child(pid_t pid, Fd go_pipe, Fd error_pipe, std::string name);

  pid_t pid_;
  Fd pidfd_;
  Fd go_pipe_;     ///< the child reads one byte from it, then starts its program
  Fd error_pipe_;  ///< the child writes errno to it if it cannot start; exec(2) closes it
  std::string name_;
  std::optional<int> status_;
  int signal_ = 0;
  std::shared_ptr<const WaitedElsewhere> elsewhere_;
};

}  // namespace pe
