// How much more runs of a program differ than drawing samples alone would make them.
//
// Each frame's spread is estimated from two or three runs, which is worth little, but there are
// hundreds of frames: each estimate is drawn towards what the others have in common, by as much
// as they agree (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004,
// article 3, where genes are what frames are here).
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

namespace pe::picture {

/// What frames have in common: a spread, and by how many degrees of freedom it is known.
struct CommonSpread {
  double spread = 1;
  double degrees = 0;  ///< 0: nothing in common is known

  /// The spread of a frame whose own runs say `own` with `own_degrees` of freedom.
  [[nodiscard]] double with(double own, double own_degrees) const;
};

/// From frames' own spreads, each with `degrees` of freedom.  Fewer than ten tell nothing.
CommonSpread common_spread(std::span<const double> own, double degrees);

/// Probability of |t| at least that large, of Student's distribution; infinite degrees are fine.
double t_p_value(double t, double degrees);
/// The t that this p-value has.
double t_of_p_value(double p, double degrees);

}  // namespace pe::picture
