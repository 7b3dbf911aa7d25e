// Running the user's command: started, held before its first instruction, let go, waited for.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cli/stop_signals.h"
#include "base/fd.h"

namespace pe {

/// Of a child that a thread of ours waits for because it traces it (ptrace(2)): a wait from
/// elsewhere in this process would take the stops away from that thread.
struct WaitedElsewhere {
  std::atomic<bool> is_waiting = true;  ///< false: whoever wants to know waits for it again
  std::atomic<int> wait_status = kNone;
  static constexpr int kNone = -1;  ///< not ended yet
};

class Child {
 public:
  /// Forks; the child waits until go() and then begins with `signals`, which are those of our own
  /// caller.  Its standard output is `stdout_fd` where that is not
  /// negative.  `environment` ("NAME=VALUE") replaces or adds to ours.  Throws Error.
  static Child start(const std::vector<std::string>& command, int stdout_fd,
                     const SignalState& signals, const std::vector<std::string>& environment = {});

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// A child that has not been waited for is ended and reaped.
  ~Child();

  /// From now on that thread waits for it.
  void is_waited_for(std::shared_ptr<const WaitedElsewhere> elsewhere) {
    elsewhere_ = std::move(elsewhere);
  }

  /// Lets it begin its program.  Throws CommandError if it cannot (126, 127).
  void go();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Readable once the child has ended (pidfd_open(2)); none on kernels before 5.3.
  [[nodiscard]] const Fd& ended_fd() const noexcept { return pidfd_; }

  /// Its status as a shell shows it (128 + signal), if it has ended.
  std::optional<int> poll_status();
  /// Ends it: asks (SIGTERM), and after `patience_ms` does not ask (SIGKILL).  False if it came to
  /// that.
  bool terminate(int patience_ms);

 private:
  std::optional<int> wait_status(int options);

  Child(pid_t pid, Fd go_pipe, Fd error_pipe, std::string name);

  pid_t pid_;
  Fd pidfd_;
  Fd go_pipe_;     ///< the child reads one byte from it, then begins its program
  Fd error_pipe_;  ///< the child writes errno to it if it cannot; closed by exec(2)
  std::string name_;
  std::optional<int> status_;
  std::shared_ptr<const WaitedElsewhere> elsewhere_;
};

}  // namespace pe
