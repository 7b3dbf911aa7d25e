// The line that `perf script -F +srcline` prints behind a frame:
//
//   	    7f2c1a2b3c4d function+0x1f (module)
//     file.c:123 (discriminator 2)
//
// "??:0" or "module[7f2c1a2b3c4d]" where it does not know.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::fold {

/// Is it indented as those are, by two blanks?  Frames have a tab, or more blanks.
bool is_source_line(std::string_view line);

/// ":file.c:123", to be put behind a frame; empty if the line tells nothing.  The perl keeps
/// "??:0", the module and the discriminator.
std::string source_suffix(std::string_view line, bool is_perl);

}  // namespace pe::fold
