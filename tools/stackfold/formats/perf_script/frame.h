// A frame line in the text of `perf script`:
//
//   	    7f2c1a2b3c4d function+0x1f (module)
//
// and the text of its function in folded text.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stackfold/options.h"

namespace pe::fold {

inline constexpr std::string_view kUnknown = "[unknown]";  ///< a function or module

struct PerfFrame {
  std::string_view pc;        ///< hexadecimal
  std::string_view function;  ///< with its offset, if perf printed one
  std::string_view module;
  bool ends_line = true;  ///< no text follows the module's bracket
};

/// Returns nullopt if the line is not a frame.  stackcollapse-perf.pl splits "f (/x (deleted))"
/// into the function "f (/x" and the module "deleted".
std::optional<PerfFrame> parse_perf_frame(std::string_view line, bool is_perl);

/// Parses a frame that is the whole of `text`; nullopt if it is other text.  The pc must be
/// hexadecimal.
std::optional<PerfFrame> parse_sole_frame(std::string_view text);

/// Is the whole of `text` an offset, "+0x1f"?
bool is_offset(std::string_view text);

/// Returns the text after the pc and blanks; empty if the line does not look like a frame.
std::string_view behind_pc(std::string_view line);

/// Cuts "+0x1f" from the end of a function.
std::string_view without_offset(std::string_view function);

/// The options that determine the text of a function.
struct FrameRules {
  Marks marks;
  bool with_addresses = false;  ///< --addrs: "[unknown <pc>]"
  bool with_modules = false;    ///< --modules: "module`name"
  bool is_perl = false;         ///< exactly as stackcollapse-perf.pl
  bool is_java = false;         ///< a Java thread: the L before a class is not part of a name
};

/// Returns the suffix for a frame of `module`.
std::string mark_of(std::string_view module, const FrameRules& rules);

/// Returns the prefix for a frame of `module`.
std::string prefix_of(std::string_view module, const FrameRules& rules);

/// Returns the text of an unknown function: `module` in brackets.
std::string unknown_text(std::string_view module, std::string_view pc, const FrameRules& rules);

/// Returns the frames of a line, outermost first: none if the line is to be left out, several for a
/// chain of inlined functions "a->b->c".
std::vector<std::string> frames_of(const PerfFrame& frame, const FrameRules& rules);

// Reads the line that `perf script -F +srcline` prints after a frame:
//
//   	    7f2c1a2b3c4d function+0x1f (module)
//     file.c:123 (discriminator 2)
//
// perf prints "??:0" or "module[7f2c1a2b3c4d]" if the source line is unknown.

/// Is the line indented by two blanks, as source lines are?  Frames have a tab, or more blanks.
bool is_source_line(std::string_view line);

/// Returns the suffix for a frame, ":file.c:123"; empty if the source line is unknown.
std::string source_suffix(std::string_view line);

/// Returns the text without spaces at its ends.
std::string_view trimmed(std::string_view text);

}  // namespace pe::fold
