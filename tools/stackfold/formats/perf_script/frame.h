// A frame line in the text of `perf script`:
//
//   	    7f2c1a2b3c4d function+0x1f (module)
//
// and how its function is written in folded text.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stackfold/options.h"

namespace pe::fold {

struct PerfFrame {
  std::string_view pc;        ///< hexadecimal
  std::string_view function;  ///< with its offset, if printed
  std::string_view module;
  bool ends_line = true;  ///< nothing stands behind the module's bracket
};

/// nullopt if the line is no frame.  The perl takes the module of "f (/x (deleted))" for
/// "deleted", and "f (/x" for its function.
std::optional<PerfFrame> parse_perf_frame(std::string_view line, bool is_perl);

/// The frame that is all of `text`, which may be something else: its pc must be hexadecimal.
std::optional<PerfFrame> parse_sole_frame(std::string_view text);

/// Is all of `text` an offset, "+0x1f"?
bool is_offset(std::string_view text);

/// What stands behind the pc and blanks of a line that looks like a frame; empty if it does not.
std::string_view behind_pc(std::string_view line);

/// The function without "+0x1f" at its end.
std::string_view without_offset(std::string_view function);

/// How many source lines stackcollapse-perf.pl reads after a frame line of `functions` functions:
/// one for each, up to the first without a name if the module is unknown, too.
std::size_t perl_source_lines(const PerfFrame& frame, std::size_t functions);

/// What decides how a function is written.
struct FrameRules {
  Marks marks;
  bool with_addresses = false;  ///< --addrs: "[unknown <pc>]"
  bool with_modules = false;    ///< --modules: "module`name"
  bool is_perl = false;         ///< exactly as stackcollapse-perf.pl
  bool is_java = false;         ///< the thread is a Java one: a leading L is none of a name
};

/// The suffix that a frame of `module` gets.
std::string mark_of(std::string_view module, const FrameRules& rules);

/// What it gets before its name.
std::string prefix_of(std::string_view module, const FrameRules& rules);

/// The frames that a line stands for, outermost first: none if it is to be left
/// out, several for a chain of inlined functions "a->b->c".
std::vector<std::string> frames_of(const PerfFrame& frame, const FrameRules& rules);

}  // namespace pe::fold
