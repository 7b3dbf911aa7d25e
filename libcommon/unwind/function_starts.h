// Finds where other functions start after a symbol without a size, as hand-written assembly has
// them.  Local symbols of such code are often stripped, so the next symbol may be far.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "unwind/function_ranges.h"

namespace pe::unwind {

/// Returns the addresses in `code`, which is at `start_svma`, from which on it is no longer the
/// function that starts there; sorted.  These are the starts and ends of functions with unwind
/// information.  In code without any, they are the multiples of 16 to which the code is padded
/// after a return, if nothing before jumps further.
std::vector<std::uint64_t> function_starts(Bytes code, std::uint64_t start_svma,
                                           const FunctionRanges& ranges);

}  // namespace pe::unwind
