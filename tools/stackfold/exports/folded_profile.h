// Folded stacks as a profile to be exported: names, and nothing else.
// SPDX-License-Identifier: MIT
#pragma once

#include "folded/folded_counts.h"
#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// Adds every stack with its count, of an event "samples"; `with_times` also as samples that stand
/// one behind the other, a millisecond each, as there are no times.  Returns how many counts had to
/// be rounded to whole numbers.
std::size_t add_folded(const folded::FoldedCounts& counts, bool with_times, Profile& profile);

}  // namespace pe::fold::exports
