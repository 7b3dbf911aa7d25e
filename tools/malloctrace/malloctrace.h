// malloctrace reports the code that allocates memory, the code that leaks it, and the contents of
// the peak.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/run.h"
#include "malloctrace/options.h"
#include "recording/child.h"
#include "recording/inprocess/listener.h"

// Checks that the command can be traced, and builds the environment that it needs.

namespace pe::malloctrace {

/// Throws UsageError if `output` is the file `program`.
void check_is_not_output(const std::string& program, const std::string& output);

/// Throws Error if the program at `path` cannot load the library (recording/inprocess/command.h),
/// or if a limit on addresses leaves no room for it.
void check_can_be_traced(const std::string& path);

/// Returns the settings for the library, without the socket: "sample=0,depth=0".
std::string settings_text(const Options& options);
/// Returns the environment variables that make the command load `library` and send to `listener`.
std::vector<std::string> tracing_environment(const Options& options, const std::string& library,
                                             const inprocess::Listener& listener);

// Handles Ctrl-C.  The first one is the command's: it may end in its own way, and memory that it
// frees counts.  The second one ends the trace.

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

namespace pe {

extern const Tool kMalloctrace;

}  // namespace pe
