// Stacks rewritten before they become frames.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace pe::flamesvg {

/// The frames of `stack` from last to first, into `out`; empty ones at the end, which
/// stand for nothing, are gone.
void reverse_frames(std::string_view stack, std::string& out);

/// A chain of wake-ups, taken apart at the frames "--": those behind the first are of
/// wakers and get the mark _[w].  A stack without such a frame gets one at its end.
void mark_wakers(std::string_view stack, std::string& out);

}  // namespace pe::flamesvg
