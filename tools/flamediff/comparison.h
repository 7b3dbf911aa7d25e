// Compares both sides of every frame and every function, and judges whether a change is noise.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flamediff/options.h"
#include "painting/statistics/noise.h"
#include "painting/tree/functions.h"
#include "painting/tree/tree_builder.h"

namespace pe::flamediff {

using folded::Count;

/// Counts of a frame or function on both sides, all runs together.
struct Sides {
  Count before, after;
};

/// The counts that are 100 % on each side: the side's own total.  If Options::is_absolute, both
/// follow from the total of the first side, scaled to the work of each side.
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

/// Counts and judged changes of the tree's nodes, or of its functions.
struct Compared {
  std::vector<Sides> sides;
  std::vector<painting::Change> changes;  ///< intervals are of shares
};

struct Comparison {
  Wholes wholes;
  Sides totals;
  std::uint64_t counts_per_sample = 1;  ///< 0: counts are not samples
  bool has_runs = false;                ///< more than two, so their variation can be measured
  Compared self_of_nodes;               ///< not judged
  Compared nodes;                       ///< with their descendants
  Compared functions;                   ///< by name_id(), with their callees
  Compared self_of_functions;
  painting::Change cost;  ///< of the whole profile; if Options::is_absolute
  /// Of each function with --fail-over: did it grow by more than the limit, and is it judged only
  /// for that?  Its entry in `functions` is the judgement.
  std::vector<bool> is_over_limit;
  bool has_cost_over_limit = false;  ///< the same of `cost`

  [[nodiscard]] bool has_empty_side() const {
    return totals.before.is_zero() || totals.after.is_zero();
  }
  [[nodiscard]] bool knows_noise() const {
    return !has_empty_side() && (has_runs || counts_per_sample > 0);
  }
};

Comparison compare(const painting::ProfileUnion& all, const Options& options);

// Formats changes for people.

/// Formats 0.1234 as "12.34%".
std::string percent(double share);
/// Formats 0.1234 as "+12.34%".
std::string signed_percent(double share);
/// Returns why the noise of the comparison is not known.  Call it only if that is so.
std::string_view why_noise_is_unknown(const Comparison& comparison);

}  // namespace pe::flamediff
