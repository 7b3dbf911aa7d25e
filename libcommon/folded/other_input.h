// Recognises inputs of other formats that users give to a reader of folded text by mistake.
//
// It uses only marks that folded text does not have: magic numbers, and the head of GHC's table.
// The table's lines end in numbers, so a reader would draw them as stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace pe::folded {

/// Returns what the start of an input is that no reader of profiles accepts, with the command that
/// helps: "compressed by zstd (...)"; empty for anything else.
std::string_view describe_unreadable(std::string_view head);

/// Returns "a sample stream, not folded text (...)" for the start of such an input, with the
/// command that folds it; empty for anything else.
std::string_view describe_other_input(std::string_view head);

}  // namespace pe::folded
