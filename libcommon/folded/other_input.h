// Recognises inputs of other formats that users give to a reader of folded text by mistake.
//
// It uses only marks that folded text does not have: magic numbers, and the head of GHC's table.
// The table's lines end in numbers, so a reader would draw them as stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace pe::folded {

/// The start of an ELF file, and what it is to a reader of profiles.
inline constexpr std::string_view kElfMagic =
    "\x7f"
    "ELF";
inline constexpr std::string_view kIsProgram =
    "a program, not a profile (record it: stackpipe record -o FILE.folded -- PROGRAM)";

/// Returns "a sample stream, not folded text (...)" for the start of such an input, with the
/// command that folds it; empty for anything else.
std::string_view describe_other_input(std::string_view head);

}  // namespace pe::folded
