// Estimates the spread: how much more runs of a program differ than sampling alone explains.
//
// The spread of one frame comes from two or three runs, which is not reliable, but there are
// hundreds of frames.  Each estimate is pulled towards the common spread, the more strongly
// the more the frames agree (Smyth, Statistical Applications in Genetics and Molecular Biology 3,
// 2004, article 3, where genes have the role of frames).
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

namespace pe::painting {

/// The spread that frames have in common, and the degrees of freedom by which it is known.
struct CommonSpread {
  double spread = 1;
  double degrees = 0;  ///< 0: no common spread is known

  /// Returns the spread of a frame whose own runs have spread `own`, known by `own_degrees`.
  [[nodiscard]] double with(double own, double own_degrees) const;
};

/// Estimates it from the frames' own spreads, each with `degrees` of freedom.  Returns a spread
/// with 0 degrees if fewer than ten own spreads are above 0.
CommonSpread common_spread(std::span<const double> own, double degrees);

/// Probability in Student's distribution of a |t| at least as large; degrees may be infinite.
double t_p_value(double t, double degrees);
/// Returns the t that has this p-value.
double t_of_p_value(double p, double degrees);

}  // namespace pe::painting
