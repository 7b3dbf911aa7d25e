// Converts folded stacks to a profile for export.  The profile has names only.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "stackfold/exports/profile.h"
#include "stackfold/folded_counts.h"

namespace pe::fold::exports {

/// The unit of counts in a profile, which holds whole numbers only.
struct FractionUnit {
  std::uint64_t in_one = 1;
  std::string_view name = "count";
  std::size_t rounded = 0;  ///< number of counts that are not whole even in this unit
};

/// Adds every stack with its count, for an event "samples".  Folded text has no times, so with
/// `with_times` also adds each stack as a sample, one millisecond after the previous one.  Counts
/// are in the returned unit.  They are rounded only if 63 bits cannot hold the sum in a finer one.
FractionUnit add_folded(const folded::FoldedCounts& counts, bool with_times, Profile& profile);

}  // namespace pe::fold::exports
