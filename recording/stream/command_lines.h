// Adds to COMM records of processes their parent and their command line, from /proc.
//
// A command line is read once: when the recorder starts, and when it gets the record of an exec.
// That takes 20 us.  A process that has ended by then, or executed another program, has none.
// Where eBPF runs, it copies the command line at the exec itself (recording/bpf/unwinder.bpf.c).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/clock.h"
#include "recording/bpf/bpf_object.h"
#include "recording/stream/synthesize.h"
#include "stream/records/sample.h"

namespace pe::recording {

class CommandLines {
 public:
  /// `attr` is the layout of the records.  Each process pays from `budget`, which must outlive
  /// this.
  CommandLines(const perf_event_attr& attr, Budget& budget) : budget_(budget), attr_(attr) {}

  /// Returns the record with the command line, if it is of an exec, or of the first thread of a
  /// process that was already running.  Valid as long as `record`, until the next call.
  stream::Record completed(const stream::Record& record);

 private:
  stream::Record with(const stream::Record& record, std::uint32_t parent, std::string_view words);

  Budget& budget_;
  perf_event_attr attr_;
  std::vector<std::byte> completed_;
};

/// A record may be this much older than what has arrived: an exec's own COMM comes when the program
/// is chosen, and the command line when it is in its memory.
inline constexpr std::uint64_t kMostExecNs = kNsPerMs;

/// Writes what the kernel's programs have sent at an exec: a COMM with the command line.  It
/// precedes the kernel's own COMM, unless the exec has taken longer than kMostExecNs.
void write_command_line(const unwind::Sample& sent, Synthesizer& synthesizer);

}  // namespace pe::recording
