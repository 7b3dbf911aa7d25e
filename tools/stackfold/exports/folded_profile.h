// Folded stacks as a profile to be exported: names, and nothing else.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "folded/folded_counts.h"
#include "stackfold/exports/profile.h"

namespace pe::fold::exports {

/// What the counts of folded text are counted in where profiles have whole numbers only.
struct FractionUnit {
  std::uint64_t in_one = 1;
  std::string_view name = "count";
  std::size_t rounded = 0;  ///< counts that are no whole numbers of it even so
};

/// Adds every stack with its count, of an event "samples"; `with_times` also as samples that stand
/// one behind the other, a millisecond each, as there are no times.  Fractions are
/// counted in the unit that is returned; rounded only where 63 bits do not hold the sum in it.
FractionUnit add_folded(const folded::FoldedCounts& counts, bool with_times, Profile& profile);

}  // namespace pe::fold::exports
