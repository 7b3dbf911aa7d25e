// Classifies the lines of `perf script` text, and recognizes such text by them.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "stackfold/formats/perf_script/frame.h"
#include "stackfold/formats/perf_script/header.h"

namespace pe::fold {

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
