// Waits while the kernel records: for full rings, the target's end, the timeout, or Ctrl-C.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "recording/child.h"
#include "recording/ending.h"

namespace pe::recording {

/// Reports when all of a set of processes and threads have ended.
class TargetWatch {
 public:
  TargetWatch(const std::vector<pid_t>& processes, const std::vector<pid_t>& threads);
  /// Returns false while any of them runs, and always if the set was empty.
  bool all_ended();
  /// Returns descriptors to poll(2), so that the caller notices ends early.
  [[nodiscard]] std::vector<int> fds() const;

 private:
  struct Watched {
    pid_t tid;
    Fd pidfd;  ///< none for single threads and on kernels before 5.3
  };
  std::vector<Watched> running_;
  bool has_targets_;
};

/// The events that end a recording, and the descriptors that wake us meanwhile.
struct WatchRequest {
  Ending& ending;
  Child* child;  ///< null: no command
  TargetWatch& targets;
  const std::vector<int>& ring_fds;
  int reader_fd;  ///< the stream's output, if that is a pipe; -1: no reader can go away
};

/// Calls `on_wake` when a ring wakes us, and at least four times a second.  When the recording
/// ends, calls Ending::stop() and returns the reason.  `on_wake` may return within how many
/// nanoseconds it must be called again.
Ended watch(const WatchRequest& request,
            const std::function<std::optional<std::uint64_t>()>& on_wake);

/// Returns the exit status after a complete recording: the command's own if it ended before the
/// recording or by the same Ctrl-C, else 0.  Terminates a command that still runs, and calls `say`
/// before it kills the command.
int end_status(Child* child, Ended ended, const std::function<void(const std::string&)>& say);

/// Returns the exit status after the output was cut off: the stream is incomplete.
int cut_off_status(const Child* child);

}  // namespace pe::recording
