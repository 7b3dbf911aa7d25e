// Both sides of every frame and every function, and what of their change is noise.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "flamediff/options.h"
#include "picture/statistics/noise.h"
#include "picture/tree/functions.h"
#include "picture/tree/tree_builder.h"

namespace pe::flamediff {

using folded::Count;

/// Something's counts on both sides, all runs together.
struct Sides {
  Count before, after;
};

/// What 100 % is of, in counts, on either side.  They are those of the sides themselves, or both
/// that of the first profile when counts are compared as they are.
struct Wholes {
  double before = 0, after = 0;

  [[nodiscard]] double share_before(const Sides& sides) const {
    return before > 0 ? sides.before.as_double() / before : 0;
  }
  [[nodiscard]] double share_after(const Sides& sides) const {
    return after > 0 ? sides.after.as_double() / after : 0;
  }
  [[nodiscard]] double change(const Sides& sides) const {
    return share_after(sides) - share_before(sides);
  }
};

/// A column of the tree's nodes or of its functions, judged.
struct Compared {
  std::vector<Sides> sides;
  std::vector<picture::Change> changes;  ///< intervals are of shares
};

struct Comparison {
  Wholes wholes;
  Sides totals;
  std::uint64_t counts_per_sample = 1;  ///< 0: counts are not samples
  bool has_runs = false;                ///< enough of them to tell what they differ by
  Compared self_of_nodes;               ///< not judged
  Compared nodes;                       ///< with all below them
  Compared functions;                   ///< by number of the name, with all that they called
  Compared self_of_functions;
  Compared grown_functions;  ///< of --fail-over: which grew by more than its limit
  picture::Change cost;      ///< of all together, for each unit of work

  [[nodiscard]] bool has_empty_side() const {
    return totals.before.is_zero() || totals.after.is_zero();
  }
  [[nodiscard]] bool knows_noise() const {
    return !has_empty_side() && (has_runs || counts_per_sample > 0);
  }
};

Comparison compare(const picture::ProfileUnion& all, const Options& options);

}  // namespace pe::flamediff
