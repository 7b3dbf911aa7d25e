// Ctrl-C: the first is the command's, to end by in its own way, and what it frees then counts.  The
// second ends the trace.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/cli/child.h"
#include "base/cli/stop_signals.h"

namespace pe::malloctrace {

class Interrupts {
 public:
  /// `command`, which must outlive this, has begun.
  explicit Interrupts(Child& command) : command_(command) {}

  /// Whether the trace goes on after the signal, `now_ns` being CLOCK_MONOTONIC.  A first SIGINT
  /// that the command has not got from the terminal is passed on to it.
  bool goes_on_after(const StopSignal& signal, std::uint64_t now_ns);

  /// True once, where the command has not ended in the second after the interrupt.
  bool is_time_to_tell(std::uint64_t now_ns);

 private:
  Child& command_;
  std::uint64_t first_ns_ = 0;  ///< 0: none yet
  bool was_told_ = false;
};

}  // namespace pe::malloctrace
