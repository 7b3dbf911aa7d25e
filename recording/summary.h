// The summary of a recording for programs: one line of JSON on a descriptor of the caller
// (--summary FD), after all messages, or before the one of a failure.
//
//     {"tool":"pe-record","result":"recorded","text":"pe-record: 997 samples in …","samples":997}
//
// The man page of each recorder lists the members.  The line has less than PIPE_BUF bytes, so an
// empty pipe accepts it at once, and nobody has to read it before the recorder ends.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/closing.h"
#include "base/cli/run.h"

namespace pe::recording {

inline constexpr const char* kSummaryHelp = "write a summary as a line of JSON to descriptor FD";

struct Summary {
  std::string_view result;  ///< "recorded", "empty", "incomplete", "denied", "failed"
  std::string text;         ///< the closing line, or why there is none, as printed
  std::vector<Figure> figures = {};
  bool lacks_counters = false;  ///< why it failed, or was denied: see Refusal

  /// Writes the line; long texts are cut.
  void write(Output& out, std::string_view tool) const;
};

/// Reads --summary; -1 if it was not given.  From now on a command does not inherit the descriptor,
/// except a standard one.  Throws UsageError if nothing can be written to it.
int read_summary_fd(const CommandLine& line);
/// The same for another option with a descriptor.
int read_writable_fd(const CommandLine& line, const char* option);

/// Writes the summary, unless `fd` is -1.  Does nothing if the reader has gone.  Prints a message
/// if the reader blocks, or the disk is full.
void write_summary(int fd, const Io& io, const Summary& summary);

/// Calls `record`, and returns its result.  If it throws, writes a summary with the reason, and
/// throws that again.
int with_summary(int fd, const Io& io, const std::function<int()>& record);

}  // namespace pe::recording
