// Decides whether a place in code may have a probe.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "objects/image.h"
#include "unwind/function_ranges.h"

namespace pe::unwind {

/// Returns why no instruction is known to start at `svma`, in words for the user; empty if one is.
/// The start of a function is accepted, and another place if the function's code leads there
/// (function_code.h), also from a function of which it is a moved part.  `ranges` are those of the
/// image; where they have no function, `symbol` states its extent.  Following the code of other
/// functions takes CPU time from `left_ns`, and gives up when none is left; null: no limit.
std::string problem_of_place(const objects::Image& image, const FunctionRanges& ranges,
                             const std::optional<FunctionRanges::Range>& symbol, std::uint64_t svma,
                             std::uint64_t* left_ns = nullptr);

}  // namespace pe::unwind
