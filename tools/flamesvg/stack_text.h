// Rewrites stacks before they become frames.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::flamesvg {

/// Writes the frames of `stack` to `out`, from last to first.  Drops empty frames at the end of
/// `stack`, which have no meaning.
void reverse_frames(std::string_view stack, std::string& out);

/// Splits a chain of wake-ups at the frames "--".  All frames after the first "--" belong to
/// wakers and get the mark _[w].  A stack without "--" gets one at its end.
void mark_wakers(std::string_view stack, std::string& out);

}  // namespace pe::flamesvg
