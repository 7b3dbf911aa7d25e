// Waiting while the kernel records: for rings to fill, the target to end, the time to be up,
// Ctrl-C.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/child.h"
#include "base/fd.h"
#include "record/ending.h"

namespace pe::record {

/// Tells when every one of some processes and threads has ended.
class TargetWatch {
 public:
  TargetWatch(const std::vector<pid_t>& processes, const std::vector<pid_t>& threads);
  /// False while any is running, and for ever if there was none to watch.
  bool all_ended();
  /// Those to poll(2) for an early word.
  [[nodiscard]] std::vector<int> fds() const;

 private:
  struct Watched {
    pid_t tid;
    Fd pidfd;  ///< none for single threads and on kernels before 5.3
  };
  std::vector<Watched> running_;
  bool has_targets_;
};

/// What ends a recording, and who wants to be woken meanwhile.
struct WatchRequest {
  Ending& ending;
  Child* child;  ///< null: no command
  TargetWatch& targets;
  const std::vector<int>& ring_fds;
  int reader_fd;  ///< where the stream goes, if that is a pipe; -1: nobody can go away
};

/// Calls `on_wake` when a ring asks for it, and at least four times a second, until something ends
/// the recording, which then stops (Ending::stop()).  It may say within how many nanoseconds it
/// wants to be called again.
Ended watch(const WatchRequest& request,
            const std::function<std::optional<std::uint64_t>()>& on_wake);

/// The status to end with, once the recording is whole; a command that still runs is asked to end.
/// `say` is called where it does not.
int end_status(Child* child, Ended ended, const std::function<void(const std::string&)>& say);

/// The status where the output was cut off: the stream is not whole.
int cut_off_status(const Child* child);

}  // namespace pe::record
