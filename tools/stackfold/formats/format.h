// The forms of input that stackfold knows: one table, from which --from, its
// help, and the telling apart by content are made.  The manual page is checked against it.
//
// To add one: a pair of files here with `looks_like` and `fold`, a row in format.cpp,
// its name in stackfold(1), a captured input in tests/data/stackfold.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "folded/folded_counts.h"
#include "io/input.h"
#include "stackfold/options.h"
#include "stackfold/text_report.h"

namespace pe::fold {

struct Format {
  std::string_view name;  ///< as --from has it
  /// Is an input that begins like this of the format?  `head` ends with a line, or with the input.
  bool (*looks_like)(std::string_view head);
  /// Reads to the end and adds every stack; nullptr for the sample stream and folded text,
  /// which have reports of their own.
  TextReport (*fold)(io::Input& input, const Options& options, folded::FoldedCounts& counts);
  bool has_times = false;        ///< of its samples, for --time
  bool has_frame_lines = false;  ///< with addresses and modules, for --inline and --srcline
};

/// All of them; where several fit an input, it is the first.  The last fits any.
std::span<const Format> formats();

/// nullptr if there is none of that name.
const Format* find_format(std::string_view name);

/// "stream, perf-script, ...".
std::string format_names();

/// The sample stream.
const Format& stream_format();
/// Folded text.
const Format& folded_format();

}  // namespace pe::fold
