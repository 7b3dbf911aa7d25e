// Measures the CPU time that a target used while it was recorded, to explain why a recording is
// empty.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recording/child.h"
#include "recording/request.h"
#include "stream/records/event.h"

namespace pe::recording {

class TargetActivity {
 public:
  /// Reads the CPU time that the target has used before the recording.
  explicit TargetActivity(Target target);

  /// The CPU time that the target has used since construction.
  struct Used {
    std::uint64_t own_ns = 0;
    std::uint64_t children_ns = 0;  ///< of unrecorded processes that it had started before
    std::size_t children = 0;       ///< number of these processes that ran
    bool is_stopped = false;        ///< a signal has stopped all of the target
    bool has_ended = false;         ///< a part has ended, so its time is unknown
  };
  /// Includes a command only after it has been waited for, unless end() was called before.
  [[nodiscard]] Used used() const { return at_end_ ? *at_end_ : measure(); }

  /// The recording ends while the target goes on: later time does not count.
  void end() { at_end_ = measure(); }

  [[nodiscard]] const Target& target() const noexcept { return target_; }

 private:
  [[nodiscard]] Used measure() const;

  using Before = std::vector<std::pair<pid_t, std::uint64_t>>;  ///< CPU time in nanoseconds

  Target target_;
  Before processes_, children_;
  Before threads_;
  std::uint64_t ended_ns_ = 0;
  std::optional<Used> at_end_;
};

/// Returns the CPU time from one sample of an event to the next; 0 if the event does not count
/// time.
std::uint64_t period_ns_of(const perf_event_attr& attr);

/// Returns how to sample more often: "raise --freq"; "record longer" if the engine does not sample
/// at a higher rate.  The kernel checks the timers of engine signal `ticks` times per second.
std::string how_to_sample_more(const Request& request, std::uint64_t ticks);

/// The samples that an empty recording should have held.
struct Wanted {
  const Request& request;
  std::uint64_t period_ns = 0;  ///< see period_ns_of()
  std::string program = {};     ///< the command's program; empty: no command
  std::uint64_t lost = 0;
  std::string_view fix_of_losses = {};
};

/// Explains an empty recording: "nothing was recorded: the target slept the whole time; its 4
/// children ran for 1.20 s: …", or "0 samples: the command ran for less than one sampling period
/// …".
std::string why_empty(const TargetActivity& activity, const Wanted& wanted);

/// Explains the same for a recording of waits instead of samples: "nothing was recorded: the target
/// ran for 1.20 s and `did_not`".
std::string why_no_waits(const TargetActivity& activity, const Wanted& wanted,
                         std::string_view did_not);

/// Returns the exit status of an empty recording: that of a failed command, otherwise our own
/// failure.
int empty_status(const Child* child, int status);

}  // namespace pe::recording
