// Handles Ctrl-C.  The first one is the command's: it may end in its own way, and memory that it
// frees counts.  The second one ends the trace.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "recording/child.h"
#include "recording/stop_signals.h"

namespace pe::malloctrace {

class Interrupts {
 public:
  /// `command` must have started, and must outlive this.
  explicit Interrupts(Child& command) : command_(command) {}

  /// Returns whether the trace goes on after the signal; `now_ns` is CLOCK_MONOTONIC.  Forwards a
  /// first SIGINT to the command if the terminal has not sent the command one.
  bool goes_on_after(const StopSignal& signal, std::uint64_t now_ns);

  /// True once, if the command has not ended within a second of the interrupt.
  bool is_time_to_tell(std::uint64_t now_ns);

 private:
  Child& command_;
  std::uint64_t first_ns_ = 0;  ///< 0: none yet
  bool was_told_ = false;
};

}  // namespace pe::malloctrace
