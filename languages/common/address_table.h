// Finds an interpreter's loop in a program without symbols: the function with the longest table of
// addresses of its own code.
//
// A loop that jumps to the code of each instruction by its address ("threaded code") has a table
// with one address for each instruction.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "objects/image.h"
#include "unwind/function_ranges.h"

namespace pe::unwind {

/// Returns the function, in svma, in which most consecutive words of the image's data lead; nullopt
/// if no table has `least` words, or the image is not for x86-64 or has no unwind information.
std::optional<FunctionRanges::Range> function_of_longest_table(const objects::Image& image,
                                                               std::size_t least);

}  // namespace pe::unwind
