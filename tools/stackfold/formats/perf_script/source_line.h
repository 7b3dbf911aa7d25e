// Reads the line that `perf script -F +srcline` prints after a frame:
//
//   	    7f2c1a2b3c4d function+0x1f (module)
//     file.c:123 (discriminator 2)
//
// perf prints "??:0" or "module[7f2c1a2b3c4d]" if the source line is unknown.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::fold {

/// Is the line indented by two blanks, as source lines are?  Frames have a tab, or more blanks.
bool is_source_line(std::string_view line);

/// Returns the suffix for a frame, ":file.c:123"; empty if the source line is unknown.
std::string source_suffix(std::string_view line);

/// Returns the text without spaces at its ends.
std::string_view trimmed(std::string_view text);

}  // namespace pe::fold
