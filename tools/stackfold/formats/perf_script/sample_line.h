// Classifies the lines of `perf script` text, and recognizes such text by them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "stackfold/formats/perf_script/frame.h"

// Parses the line that starts a sample in the text of `perf script`:
//
//   comm  pid/tid [cpu]  seconds:  period event:
//
// In a recording without call chains, the only frame is on the same line:
//
//   comm  pid  seconds:  period event:  pc function (module)
//
// Every field but the name and one number may be missing.  Names may contain blanks, digits and
// colons.
// Source: perf-script(1), and the output of stackcollapse-perf.pl.

namespace pe::fold {

struct PerfEventField {
  std::string_view name;             ///< "cycles", "cpu-clock:ppp", "sched:sched_switch"
  std::string_view period_digits;    ///< empty: not printed
  std::uint64_t period = 0;          ///< 0: not printed, or too large
  bool is_period_too_large = false;  ///< perf printed a period above 64 bits
};

struct PerfHeader {
  std::string_view comm;
  std::string_view pid;  ///< empty if perf printed only one number
  std::string_view tid;
  std::optional<PerfEventField> event;
  bool has_place_or_time = false;     ///< "[cpu]" or the time follows the numbers
  std::string_view rest = {};         ///< the text after the numbers
  std::string_view after_event = {};  ///< the fields of a tracepoint, or a frame
};

/// Returns nullopt if the line does not start a sample.  The name ends before the last numbers that
/// precede "[cpu]" or the time, and an event may precede its fields.  In stackcollapse-perf.pl, the
/// first number ends the name, which has two characters or more, and the event ends the line.
std::optional<PerfHeader> parse_perf_header(std::string_view line, bool is_perl);

/// Returns the time in a header ("12.345678:") in microseconds; nullopt if it has none.
std::optional<std::uint64_t> header_time_us(const PerfHeader& header);

/// The line that starts a sample.  In a recording without call chains, the line also has the
/// sample's only frame, and perf aligns the thread's name to the right.
struct SampleLine {
  std::optional<PerfHeader> header;
  std::optional<PerfFrame> frame;
};

/// Returns no header if the line does not start a sample.
SampleLine parse_sample_line(std::string_view line, bool is_perl);

/// Is the line a record that is no sample ("... 1.5: PERF_RECORD_COMM: sh:12/12")?  perf script
/// prints these with --show-task-events, --show-mmap-events and similar options.
bool is_other_record(std::string_view line);

/// Returns whether the line has only blanks.
bool is_blank_line(std::string_view line);

namespace perf_script {

/// Do the lines of `head` have the marks of perf script's text?  A sample's first line has an event
/// and a CPU or a time after the process, or a line with a hexadecimal pc follows it.  One such
/// line among other text is not enough: the text of other tools, and folded text whose names have
/// numbers, have similar lines.
bool looks_like(std::string_view head);

}  // namespace perf_script

}  // namespace pe::fold
