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

#include "base/io/input.h"
#include "folded/folded_counts.h"
#include "stackfold/options.h"
#include "stackfold/text_report.h"

namespace pe::fold {

/// What samples of a format have, which some options need.
struct FormatHas {
  bool times = false;        ///< for --time
  bool frame_lines = false;  ///< with addresses, for --inline and --srcline
  bool modules = false;      ///< for --modules
  bool waits = false;        ///< but no word of which they are, for --running
};

struct Format {
  std::string_view name;  ///< as --from has it
  /// Is an input that begins like this of the format?  `head` ends with a line, or with the input.
  bool (*looks_like)(std::string_view head);
  /// Reads to the end and adds every stack; nullptr for the sample stream and folded text,
  /// which have reports of their own.
  TextReport (*fold)(Input& input, const Options& options, folded::FoldedCounts& counts);
  FormatHas has = {};
  /// --compat: reads all inputs as one text; nullptr: each is read by itself.
  TextReport (*fold_as_perl)(std::span<Input> inputs, const Options& options,
                             folded::FoldedCounts& counts) = nullptr;
};

/// All of them; where several fit an input, it is the first.
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
