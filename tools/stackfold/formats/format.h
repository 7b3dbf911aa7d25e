// The input formats that stackfold knows, in one table.  --from, its help, and the detection by
// content use this table; a check compares the manual page with it.
//
// To add a format, write a file here with `looks_like` and `fold`, their declarations in readers.h,
// and a row in format.cpp.  Also add its name to stackfold(1), and a captured input to
// tests/data/stackfold.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/io/input.h"
#include "stackfold/folded_counts.h"
#include "stackfold/options.h"
#include "stackfold/text_report.h"

namespace pe::fold {

/// The data in a format's samples that some options need.
struct FormatHas {
  bool times = false;        ///< for --time
  bool frame_lines = false;  ///< with addresses, for --inline and --lines
  bool modules = false;      ///< for --modules
  bool waits = false;        ///< stacks that wait, without a mark in the text; for --running
  bool events = true;        ///< or types of samples, for --event
};

/// Does an input with this start have the format?  `head` ends with a line, or with the input.
using LooksLike = bool(std::string_view head);
/// Reads to the end and adds every stack.
using Fold = TextReport(Input& input, const Options& options, folded::FoldedCounts& counts);

struct Format {
  std::string_view name;  ///< the argument of --from
  LooksLike* looks_like;
  Fold* fold;  ///< nullptr for the sample stream and folded text, whose readers have other reports
  FormatHas has = {};
  /// For --compat: reads all inputs as one text.  nullptr: each input is a text of its own.
  TextReport (*fold_as_perl)(std::span<Input> inputs, const Options& options,
                             folded::FoldedCounts& counts) = nullptr;
};

/// Returns all formats.  If several match an input, the first wins.
std::span<const Format> formats();

/// The sample stream.
const Format& stream_format();
/// Folded text.
const Format& folded_format();

}  // namespace pe::fold
