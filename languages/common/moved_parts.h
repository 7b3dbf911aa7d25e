// Finds the parts of a function that the compiler has placed elsewhere, ".cold", without symbols.
//
// Unwind information describes such a part like a function, but the stack frame exists already at
// its first instruction, and the function jumps to it.
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "objects/image.h"
#include "unwind/function_ranges.h"

namespace pe::unwind {

/// Returns the parts of the function whose own code is `function`, in svma.  Returns none if the
/// image is not for x86-64, or has no unwind information.  At most eight parts are found.
std::vector<FunctionRanges::Range> moved_parts(const objects::Image& image,
                                               FunctionRanges::Range function);

}  // namespace pe::unwind
